//! Reads the names and prices of single upstreams in a price.

use std::sync::Arc;

use super::by_unit::{Units, known_unit, read_units};
use super::credits_file::read_max;
use super::object::{Object, UnknownKeys, documentation};
use super::problem::Problems;
use crate::catalogue::model_names::{ModelPlace, UpstreamModel};
use crate::catalogue::route_upstreams::RouteUpstreams;
use crate::catalogue::units::UnitPrice;
use crate::catalogue::usage_price::{UpstreamTerms, UsagePrice};
use crate::money::credits::Credits;

/// The key of a price, or of a model in it.
pub(super) const KEY: &str = "upstreams";
const UPSTREAM_KEYS: [&str; 4] = ["model", "max", "units", "per_million"];
const NAME_BYTES_MAX: usize = 256;

/// The differences at an upstream.
pub(super) struct Terms {
    upstream: Box<str>,
    model: Option<UpstreamModel>,
    max: Option<Credits>,
    units: Option<Units>,
}

impl Terms {
    /// Its own prices of units.
    pub(super) fn units(&self) -> impl Iterator<Item = &(Box<str>, UnitPrice)> {
        self.units.iter().flatten()
    }

    /// The price at the other upstreams.
    pub(super) fn of(self, price: &UsagePrice) -> UpstreamTerms {
        let Self { upstream, model, max, units } = self;
        let is_own = max.is_some() || units.is_some();
        let own = || {
            let max = max.unwrap_or(price.max);
            let units = units.unwrap_or_else(|| price.units.clone());
            Arc::new(UsagePrice { max, min: price.min.min(max), units, ..price.clone() })
        };
        UpstreamTerms { upstream, model, price: is_own.then(own) }
    }
}

/// Reads `upstreams` of a price or of a model. `units` are the prices of other upstreams. `model` is the model's name, or
/// the beginning of names and an asterisk, and the place where requests have it.
///
/// # Errors
/// The location and text of each problem.
pub(super) fn read(
    of: &Object<'_>,
    units: &Units,
    model: Option<(&str, &ModelPlace)>,
    unknown: UnknownKeys,
) -> Result<Vec<Terms>, Problems> {
    let Some(upstreams) = documentation(of.object(KEY), unknown)? else { return Ok(Vec::new()) };
    let mut problems = Problems::default();
    let read = problems.all(
        upstreams
            .members()
            .map(|(name, _)| documentation(read_terms(&upstreams, name, units, model, unknown).map(Some), unknown)),
    );
    problems.or(|| Some(read?.into_iter().flatten().collect()))
}

fn read_terms(
    upstreams: &Object<'_>,
    name: &str,
    units: &Units,
    model: Option<(&str, &ModelPlace)>,
    unknown: UnknownKeys,
) -> Result<Terms, Problems> {
    let location = upstreams.location_of(name);
    let terms = upstreams.object(name)?.ok_or_else(|| format!("{location} is missing"))?;
    let mut problems = Problems::default();
    problems.keep(terms.only(&UPSTREAM_KEYS, unknown));
    let max = problems.keep(if terms.has("max") { read_max(&terms).map(Some) } else { Ok(None) });
    let own = problems.keep(read_units(&terms));
    if let Some(own) = own.as_ref().filter(|own| !own.is_empty()) {
        problems.all(own.iter().map(|(unit, _)| known_unit(unit, units, &location)));
        for (unit, _) in units.iter().filter(|(unit, _)| own.iter().all(|(known, _)| known != unit)) {
            problems.add(format!("{location}: has no price for unit {unit}; add it, or leave out all of its prices"));
        }
    }
    let name_there = problems.keep(terms.get::<String>("model")).flatten();
    let model =
        name_there.map(|name| upstream_model(&name, model).map_err(|problem| format!("{location}.model: {problem}")));
    let model = problems.keep(model.transpose());
    if ["model", "max", "units", "per_million"].iter().all(|key| !terms.has(key)) && unknown == UnknownKeys::Refuse {
        problems.add(format!("{location}: is empty; add model, or prices"));
    }
    problems.or(|| {
        Some(Terms { upstream: name.into(), model: model?, max: max?, units: own.filter(|own| !own.is_empty()) })
    })
}

/// The name that an upstream has for a model.
fn upstream_model(name: &str, model: Option<(&str, &ModelPlace)>) -> Result<UpstreamModel, String> {
    let Some((known, place)) = model else {
        return Err("has no effect, because this price is not by model; set it in a model of models".to_owned());
    };
    let begins = name.strip_suffix('*');
    let stem = begins.unwrap_or(name);
    if stem.contains('*') || name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(format!(
            "must be a name of 1 to {NAME_BYTES_MAX} bytes, or the beginning of names and an asterisk"
        ));
    }
    let replaced = match (begins, known.strip_suffix('*'), place) {
        (None, _, _) => None,
        (Some(_), Some(prefix), ModelPlace::Json(_)) => Some(prefix.len()),
        (Some(_), Some(_), ModelPlace::Param(_)) => {
            return Err("must be a whole name, because it is in the path".to_owned());
        }
        (Some(_), None, _) => return Err(format!("must be a whole name, because {known} is one")),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:@".contains(&byte);
    if matches!(place, ModelPlace::Param(_)) && !name.bytes().all(plain) {
        return Err("must consist of A-Z a-z 0-9 - . _ : @, because it is in the path".to_owned());
    }
    Ok(UpstreamModel { place: place.clone(), name: stem.into(), replaced })
}

/// Checks that a route tries the upstreams that its price names.
///
/// # Errors
/// An upstream that it does not try.
pub(super) fn check_names(price: &UsagePrice, route: Option<&RouteUpstreams>) -> Result<(), String> {
    let is_tried = |name: &&str| route.is_some_and(|route| route.names().any(|known| known == *name));
    match price.named_upstreams().find(|name| !is_tried(name)) {
        Some(name) => {
            Err(format!("price: {KEY} has {name}, which is not an upstream of this route; list it in upstream"))
        }
        None => Ok(()),
    }
}
