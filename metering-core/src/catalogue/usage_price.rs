//! Prices by usage: the cost of a request is known only after its response.
//!
//! Before the request runs, an estimate of the most that it may cost, or the price's maximum, is held. Afterwards the
//! cost that the response reports is captured. No rule here depends on a store: these are pure functions of the request
//! and the response.

use std::fmt;
use std::sync::Arc;

use crate::catalogue::estimate::Estimate;
use crate::catalogue::json_report::JsonReport;
use crate::catalogue::model_names::{ModelNames, ModelPlace, UpstreamModel};
use crate::catalogue::nearest::nearest;
use crate::catalogue::report::{Report, Source};
use crate::catalogue::units::{Count, Counts, ExactCost, UnitPrice};
use crate::money::credits::{ATOMS_PER_CREDIT, Credits};

/// The price of a route whose cost depends on the usage that its response reports.
///
/// ```
/// use metering_core::Catalogue;
/// use metering_core::catalogue::Counts;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true, "price": {
///         "max": "0.5", "min": "0.0001",
///         "units": {"input_tokens": "0.00000025", "output_tokens": "0.000001"},
///         "report": {"json": {"input_tokens": "/usage/prompt_tokens", "output_tokens": "/usage/completion_tokens"}},
///         "estimate": {"json": {"output_tokens": "/max_tokens"}, "bytes": "input_tokens"}}}]}"#,
/// )?;
/// let price = catalogue.routes()[0].usage_price().ok_or("no price by usage")?;
/// // 39 bytes and at most 1000 tokens of output.
/// assert_eq!(price.hold(Some(br#"{"max_tokens": 1000, "messages": ["x"]}"#)), "0.00100975".parse()?);
/// assert_eq!(price.hold(None), price.max());
///
/// let counts: Counts = serde_json::from_str(r#"{"input_tokens": 20, "output_tokens": 400}"#)?;
/// assert_eq!(price.cost(&counts)?, "0.000405".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsagePrice {
    pub(super) max: Credits,
    pub(super) min: Credits,
    /// The price of each unit, in the file's order.
    pub(super) units: Vec<(Box<str>, UnitPrice)>,
    pub(super) report: Report,
    pub(super) missing: Missing,
    pub(super) over: Over,
    pub(super) estimate: Option<Estimate>,
    /// The units that are tokens, if they are listed.
    pub(super) tokens: Option<Vec<Box<str>>>,
    /// The prices of models, if they have their own. The amounts above then apply to all of them: the highest maximum,
    /// the lowest minimum, the highest price of each unit.
    pub(super) models: Option<ByModel>,
    /// For the price of a model: the name or pattern that it is listed under.
    pub(super) listed_as: Option<Box<str>>,
    /// The differences at single upstreams. The maximum above covers all of them.
    pub(super) upstreams: Vec<UpstreamTerms>,
}

/// Prices by model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ByModel {
    pub(super) place: ModelPlace,
    pub(super) names: ModelNames,
    /// Each name or pattern, and its price, in the file's order.
    pub(super) prices: Vec<(Box<str>, Arc<UsagePrice>)>,
}

/// The differences at an upstream of the route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UpstreamTerms {
    pub(super) upstream: Box<str>,
    /// Its own name for the model, if it differs.
    pub(super) model: Option<UpstreamModel>,
    /// The price of a request that it serves, if it differs from the others' price.
    pub(super) price: Option<Arc<UsagePrice>>,
}

/// The most that a request costs, whatever its response reports: a million credits.
const MAX_COST: Credits = Credits::from_atoms(1_000_000 * ATOMS_PER_CREDIT);

/// How many models a sentence about a price names.
const MODELS_SHOWN: usize = 10;

/// The cost of a request without a readable report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Missing {
    /// The held amount.
    Hold,
    /// The price's minimum.
    #[default]
    Minimum,
    /// Nothing.
    Release,
}

/// The cost of a request that used more than the hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Over {
    /// The held amount.
    #[default]
    Cap,
    /// The full cost, even if the balance goes below zero.
    Debt,
}

/// Why counts of units have no cost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CostError {
    /// The price has no such unit.
    #[error("{unit} is not a unit of this price; {hint}")]
    UnknownUnit {
        /// The unit, cut after 64 characters.
        unit: String,
        /// The units that the price has.
        hint: String,
    },
}

impl UsagePrice {
    /// The most that is held for a request. Above zero.
    #[must_use]
    pub const fn max(&self) -> Credits {
        self.max
    }

    /// The least that a captured request costs. At most [`UsagePrice::max`].
    #[must_use]
    pub const fn min(&self) -> Credits {
        self.min
    }

    /// Each unit and its price, in the file's order. None when the report is in credits.
    pub fn units(&self) -> impl Iterator<Item = (&str, UnitPrice)> {
        self.units.iter().map(|(unit, price)| (&**unit, *price))
    }

    /// Where the response reports its cost.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// The amount to hold for a request: the estimate of its cost, from [`UsagePrice::min`] to [`UsagePrice::max`].
    /// Without an estimate, the maximum. It covers the most expensive upstream.
    ///
    /// `body` is the request's whole body. Pass `None` when it is encoded (`Content-Encoding`) or was not read: its
    /// length then reveals nothing about its content.
    #[must_use]
    pub fn hold(&self, body: Option<&[u8]>) -> Credits {
        let estimate = self.estimate.as_ref().zip(body).and_then(|(estimate, body)| estimate.cost(&self.units, body));
        let own = estimate.map_or(self.max, |cost| cost.round_up().clamp(self.min, self.max));
        self.upstreams().map(|(_, price)| price.hold(body)).fold(own, Ord::max)
    }

    /// Whether the hold for a request depends on its body.
    #[must_use]
    pub const fn needs_request_body(&self) -> bool {
        self.estimate.is_some() || self.has_model_in_body()
    }

    /// Whether the body of a request, which is JSON then, names the model that decides the price.
    pub(crate) const fn has_model_in_body(&self) -> bool {
        matches!(&self.models, Some(ByModel { place: ModelPlace::Json(_), .. }))
    }

    /// The prices of models, in the file's order: each name, or the beginning of names and an asterisk. None when all
    /// requests have the same price. Otherwise a request has the price of its model
    /// ([`Route::usage_price_of`](crate::catalogue::Route::usage_price_of)).
    ///
    /// ```
    /// use metering_core::Catalogue;
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true, "price": {
    ///         "max": "0.5", "model": {"json": "/model"},
    ///         "models": {"small": {"per_million": {"tokens": "0.25"}}, "large*": {"per_million": {"tokens": "10"}}},
    ///         "report": {"json": {"tokens": "/usage/total_tokens"}}}}]}"#,
    /// )?;
    /// let price = catalogue.routes()[0].usage_price().ok_or("no price by usage")?;
    /// let names: Vec<_> = price.models().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["small", "large*"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn models(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.models.iter().flat_map(|models| &models.prices).map(|(name, price)| (&**name, &**price))
    }

    /// For the price of a model: the name or pattern that it is listed under.
    #[must_use]
    pub fn listed_as(&self) -> Option<&str> {
        self.listed_as.as_deref()
    }

    /// The price that was listed under this name or pattern: the current one, or else the price of the model with this
    /// name.
    #[must_use]
    pub fn of_listed(&self, listed_as: &str) -> Option<&Arc<Self>> {
        let models = self.models.as_ref()?;
        let same = models.prices.iter().position(|(name, _)| **name == *listed_as);
        let (_, price) = models.prices.get(same.or_else(|| models.names.find(listed_as))?)?;
        Some(price)
    }

    /// The path parameter that names the model, if that is where requests do.
    pub(super) fn model_param(&self) -> Option<&str> {
        match &self.models.as_ref()?.place {
            ModelPlace::Param(name) => Some(name),
            ModelPlace::Json(_) => None,
        }
    }

    /// Whether models have their own prices.
    #[must_use]
    pub const fn is_by_model(&self) -> bool {
        self.models.is_some()
    }

    /// The cost of these units, rounded up to an atom, and at least [`UsagePrice::min`]. It can exceed the hold. A cost
    /// above [`Credits::MAX`] counts as the maximum.
    ///
    /// # Errors
    /// When the price does not have one of the units.
    pub fn cost(&self, counts: &Counts) -> Result<Credits, CostError> {
        match counts.iter().find(|(unit, _)| self.unit_price(unit).is_none()) {
            Some((unit, _)) => Err(self.unknown_unit(unit)),
            None => Ok(self.cost_of_known(counts)),
        }
    }

    /// The cost of a request that reports credits: the reported amount, but at least [`UsagePrice::min`] and at most a
    /// million, so an absurd report cannot use up the range of an account's totals.
    #[must_use]
    pub fn cost_of_credits(&self, reported: Credits) -> Credits {
        reported.max(self.min).min(MAX_COST)
    }

    /// The amount to capture when the response has no readable report. At most `held`.
    #[must_use]
    pub fn without_report(&self, held: Credits) -> Credits {
        match self.missing {
            Missing::Hold => held,
            Missing::Minimum => self.min.min(held),
            Missing::Release => Credits::ZERO,
        }
    }

    /// Whether a cost above the hold is charged in full, so the balance may go below zero. Otherwise only the hold is
    /// charged.
    #[must_use]
    pub const fn may_exceed_hold(&self) -> bool {
        matches!(self.over, Over::Debt)
    }

    /// The amount to capture for a request that costs `cost`, if `held` is held.
    #[must_use]
    pub fn captured(&self, cost: Credits, held: Credits) -> Credits {
        if self.may_exceed_hold() { cost } else { cost.min(held) }
    }

    /// The cost of counts, ignoring units that the price does not have.
    pub(super) fn cost_of_known(&self, counts: &Counts) -> Credits {
        let known = counts.iter().filter_map(|(unit, count)| Some((count, self.unit_price(unit)?)));
        let cost = known.fold(ExactCost::ZERO, |cost, (count, price)| cost.plus(count, price));
        self.cost_of_credits(cost.round_up())
    }

    /// The cost of a response body of this length.
    pub(super) fn cost_of_bytes(&self, bytes: u64) -> Credits {
        let Source::Bytes(unit) = &self.report.source else { return self.min };
        self.cost_of_known(&Counts::from_iter([(unit.to_string(), Count::from(bytes))]))
    }

    /// The report, if it is in a JSON body.
    pub(super) fn json_report(&self) -> Option<&JsonReport> {
        match &self.report.source {
            Source::Json(report) => Some(report),
            Source::Headers(_) | Source::Bytes(_) | Source::Unknown => None,
        }
    }

    pub(super) fn unit_price(&self, unit: &str) -> Option<UnitPrice> {
        self.units().find(|(known, _)| *known == unit).map(|(_, price)| price)
    }

    fn unknown_unit(&self, unit: &str) -> CostError {
        let names: Vec<&str> = self.units().map(|(unit, _)| unit).collect();
        let hint = match nearest(unit, names.iter().copied()) {
            _ if names.is_empty() => "it has no units, only credits".to_owned(),
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("its units are {}", names.join(", ")),
        };
        CostError::UnknownUnit { unit: unit.chars().take(64).collect(), hint }
    }
}

/// For people, for example `up to 0.5 credits: input_tokens 0.00000025 each, output_tokens 0.000001 each`.
impl fmt::Display for UsagePrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if Some(self.max) == Credits::from_whole(1) { "credit" } else { "credits" };
        if self.min.is_positive() {
            write!(f, "{} to {} {noun}", self.min, self.max)?;
        } else {
            write!(f, "up to {} {noun}", self.max)?;
        }
        if self.is_by_model() {
            self.write_models(f)?;
        } else if self.units.is_empty() {
            f.write_str(", as each response reports")?;
        } else {
            f.write_str(": ")?;
            self.write_units(f)?;
        }
        if self.may_exceed_hold() { f.write_str("; a higher cost is charged in full") } else { Ok(()) }
    }
}

impl UsagePrice {
    fn write_units(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (unit, price)) in self.units().enumerate() {
            write!(f, "{}{unit} {price} each", if position == 0 { "" } else { ", " })?;
        }
        for (upstream, price) in self.upstreams() {
            write!(f, ", or at {upstream} ")?;
            price.write_units(f)?;
        }
        Ok(())
    }

    fn write_models(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(", by model: ")?;
        for (position, (name, price)) in self.models().take(MODELS_SHOWN).enumerate() {
            write!(f, "{}{name} ", if position == 0 { "" } else { "; " })?;
            price.write_units(f)?;
        }
        match self.models().count().saturating_sub(MODELS_SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
