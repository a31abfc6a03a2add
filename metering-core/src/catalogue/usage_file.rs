//! Reads the prices by usage of a catalogue file, and checks their rules.

use std::sync::Arc;

use super::credits_file::{read_max, read_min};
use super::model_file::{self, Model, Models};
use super::object::{Object, UnknownKeys, choice, documentation, texts};
use super::upstream_file;
use crate::catalogue::by_unit::{Units, by_unit, known_unit, pointers, read_units};
use crate::catalogue::estimate::Estimate;
use crate::catalogue::problem::Problems;
use crate::catalogue::report::{Report, Source};
use crate::catalogue::report_file::read_report;
use crate::catalogue::usage_price::{ByModel, Missing, Over, UsagePrice};

const PRICE_KEYS: [&str; 14] = [
    "max",
    "min",
    "units",
    "per_million",
    "model",
    "models",
    "report",
    "missing",
    "over",
    "estimate",
    "failed",
    "delivered",
    "tokens",
    upstream_file::KEY,
];
const ESTIMATE_KEYS: [&str; 3] = ["json", "bytes", "times"];

/// Reads the object of a `price` field.
///
/// # Errors
/// The location and text of each problem.
pub(super) fn read_price(price: &Object<'_>, unknown: UnknownKeys) -> Result<UsagePrice, Problems> {
    let mut problems = Problems::default();
    problems.keep(price.only(&PRICE_KEYS, unknown));
    let models = problems.keep(model_file::read(price, unknown));
    let of_models = models.as_ref().and_then(Option::as_ref);
    let max = match of_models.and_then(Models::max).filter(|_| !price.has("max")) {
        Some(max) => Some(max),
        None => problems.keep(read_max(price)),
    };
    let min = problems.keep(read_min(price, max));
    let units = match of_models {
        Some(models) => Some(models.dearest_units()),
        // The units of models that could not be read are not known.
        None if price.has("models") => None,
        None => problems.keep(read_units(price)),
    };
    let upstreams = match &units {
        Some(_) if of_models.is_some() && price.has(upstream_file::KEY) => {
            problems
                .add(format!("{}: each model has its own; move it into models", price.location_of(upstream_file::KEY)));
            None
        }
        Some(units) => problems.keep(upstream_file::read(price, units, None, unknown)),
        None => None,
    };
    // The report and the estimate are checked against the units, if those could be read.
    let of_units = units.as_ref().map(|units| {
        // Another server's catalogue may have kinds of reports that are not known here. Its price can still be shown.
        let source = problems.keep(documentation(read_report(price, units, unknown).map(Some), unknown));
        let estimate = problems.keep(documentation(read_estimate(price, units, unknown), unknown));
        let tokens = problems.keep(documentation(read_tokens(price, units), unknown));
        (source.flatten().unwrap_or(Source::Unknown), estimate.flatten(), tokens.flatten())
    });
    let missing = [("hold", Missing::Hold), ("minimum", Missing::Minimum), ("release", Missing::Release)];
    let over = [("cap", Over::Cap), ("debt", Over::Debt)];
    let missing = problems.keep(documentation(choice(price, "missing", &missing), unknown));
    let over = problems.keep(documentation(choice(price, "over", &over), unknown));
    let has_limits = of_models.is_some_and(|models| models.models.iter().any(|model| !model.limits.is_empty()));
    if has_limits && !price.has("estimate") {
        problems
            .add(format!("{} is missing: without it, limits of models have no effect", price.location_of("estimate")));
    }
    problems.or(|| {
        let (source, estimate, tokens) = of_units?;
        let price = UsagePrice {
            max: max?,
            min: min?,
            units: units?,
            report: Report { source },
            missing: missing?.unwrap_or_default(),
            over: over?.unwrap_or_default(),
            estimate,
            tokens,
            models: None,
            listed_as: None,
            upstreams: Vec::new(),
        };
        Some(match models? {
            Some(models) => by_model(price, models),
            None => {
                let terms = upstreams?.into_iter().map(|terms| terms.of(&price)).collect();
                price.with_upstreams(terms)
            }
        })
    })
}

/// The price of a route whose models have their own: its amounts are those that hold for all of them.
fn by_model(price: UsagePrice, models: Models) -> UsagePrice {
    let of_model = |model: Model| {
        let mut own = UsagePrice { units: model.units, listed_as: Some(model.name.clone()), ..price.clone() };
        own.max = model.max.unwrap_or(price.max);
        own.min = model.min.unwrap_or(price.min).min(own.max);
        if let Some(estimate) = &mut own.estimate {
            estimate.limits = model.limits;
        }
        let terms = model.upstreams.into_iter().map(|terms| terms.of(&own)).collect();
        (model.name, Arc::new(own.with_upstreams(terms)))
    };
    let prices: Vec<(Box<str>, Arc<UsagePrice>)> = models.models.into_iter().map(of_model).collect();
    let max = prices.iter().map(|(_, own)| own.max).max().unwrap_or(price.max);
    let min = prices.iter().map(|(_, own)| own.min).min().unwrap_or(price.min);
    UsagePrice { max, min, models: Some(ByModel { place: models.place, names: models.names, prices }), ..price }
}

/// The units that count towards limits on tokens per minute, if they are listed.
fn read_tokens(price: &Object<'_>, units: &Units) -> Result<Option<Vec<Box<str>>>, Problems> {
    if !price.has("tokens") {
        return Ok(None);
    }
    let mut problems = Problems::default();
    let known = |unit: String| known_unit(&unit, units, &price.location_of("tokens"));
    let listed = texts(price, "tokens").map(|units| problems.all(units.into_iter().map(known)));
    let listed = problems.keep(listed).flatten();
    problems.or(|| Some(Some(listed?)))
}

fn read_estimate(price: &Object<'_>, units: &Units, unknown: UnknownKeys) -> Result<Option<Estimate>, Problems> {
    let Some(estimate) = price.object("estimate")? else { return Ok(None) };
    let mut problems = Problems::default();
    problems.keep(estimate.only(&ESTIMATE_KEYS, unknown));
    let object = problems.keep(estimate.object("json")).flatten();
    let json = object.as_ref().map_or(Some(Vec::new()), |object| {
        problems.all(by_unit(object).map(|(unit, _)| {
            Ok::<_, String>((known_unit(unit, units, &object.location_of(unit))?, pointers(object, unit)?))
        }))
    });
    let known = |unit: String| known_unit(&unit, units, &estimate.location_of("bytes"));
    let bytes = texts(&estimate, "bytes").map(|units| problems.all(units.into_iter().map(known)));
    let bytes = problems.keep(bytes).flatten();
    let times = problems.keep(if estimate.has("times") { pointers(&estimate, "times") } else { Ok(Vec::new()) });
    if let (Some(json), Some(bytes)) = (&json, &bytes) {
        for (unit, _) in json.iter().filter(|(unit, _)| bytes.contains(unit)) {
            let location = price.location_of("estimate");
            problems.add(format!("{location}: unit {unit} is estimated twice, by json and by bytes"));
        }
        if json.is_empty() && bytes.is_empty() {
            problems.add(format!("{}: must estimate units by json or bytes", price.location_of("estimate")));
        }
    }
    problems.or(|| Some(Some(Estimate { json: json?, bytes: bytes?, times: times?, limits: Vec::new() })))
}

#[cfg(test)]
mod tests;
