//! Reads the prices by model of a price by usage.

use serde_json::value::RawValue;

use super::by_unit::{Units, by_unit, known_unit, read_units};
use super::credits_file::{read_max, read_min};
use super::object::{Object, UnknownKeys};
use super::problem::Problems;
use super::upstream_file::{self, Terms};
use crate::catalogue::model_names::{ModelNames, ModelPlace};
use crate::catalogue::pointer::Pointer;
use crate::catalogue::units::{Count, UnitPrice};
use crate::money::credits::Credits;

const PLACE_KEYS: [&str; 2] = ["json", "param"];
const MODEL_KEYS: [&str; 6] = ["max", "min", "units", "per_million", "limits", upstream_file::KEY];

/// The models of a price, in the file's order.
pub(super) struct Models {
    pub(super) place: ModelPlace,
    pub(super) names: ModelNames,
    pub(super) models: Vec<Model>,
}

/// A model's own terms.
pub(super) struct Model {
    pub(super) name: Box<str>,
    pub(super) max: Option<Credits>,
    pub(super) min: Option<Credits>,
    pub(super) units: Units,
    pub(super) limits: Vec<(Box<str>, Count)>,
    /// The differences at single upstreams.
    pub(super) upstreams: Vec<Terms>,
}

impl Model {
    /// All of its prices.
    fn prices(&self) -> impl Iterator<Item = &(Box<str>, UnitPrice)> {
        self.units.iter().chain(self.upstreams.iter().flat_map(Terms::units))
    }
}

impl Models {
    /// Each unit that some model has a price for, with the highest of its prices.
    pub(super) fn dearest_units(&self) -> Units {
        let mut dearest = Units::new();
        for (unit, price) in self.models.iter().flat_map(Model::prices) {
            match dearest.iter_mut().find(|(known, _)| known == unit) {
                Some((_, known)) => *known = (*known).max(*price),
                None => dearest.push((unit.clone(), *price)),
            }
        }
        dearest
    }

    /// The most that is held for any model, if every model declares a maximum.
    pub(super) fn max(&self) -> Option<Credits> {
        self.models.iter().map(|model| model.max).collect::<Option<Vec<_>>>()?.into_iter().max()
    }
}

/// Reads `model` and `models` of a price, if it has them.
///
/// # Errors
/// The location and text of each problem.
pub(super) fn read(price: &Object<'_>, unknown: UnknownKeys) -> Result<Option<Models>, Problems> {
    let Some(object) = price.object("models")? else {
        return match price.has("model") {
            true => Err(format!("{}: has no effect without models", price.location_of("model")).into()),
            false => Ok(None),
        };
    };
    let mut problems = Problems::default();
    for key in ["units", "per_million"].into_iter().filter(|key| price.has(key)) {
        problems.add(format!("{}: each model has its own; move it into models", price.location_of(key)));
    }
    let place = problems.keep(read_place(price, unknown));
    let located = |problem: String| format!("{}: {problem}", price.location_of("models"));
    let names = problems.keep(ModelNames::new(object.members().map(|(name, _)| name)).map_err(located));
    if object.members().next().is_none() {
        problems.add(located("must have at least one model".to_owned()));
    }
    let models = problems.all(object.members().map(|(name, _)| read_model(&object, name, place.as_ref(), unknown)));
    let read = problems.or(|| Some(Models { place: place?, names: names?, models: models? }))?;
    check_units(&read, &object)?;
    Ok(Some(read))
}

/// Checks that all models have prices for the same units, because all of them report the same ones.
fn check_units(read: &Models, object: &Object<'_>) -> Result<(), Problems> {
    let (mut problems, all) = (Problems::default(), read.dearest_units());
    for model in &read.models {
        let has = |unit: &str| model.units.iter().any(|(known, _)| **known == *unit);
        for (unit, _) in all.iter().filter(|(unit, _)| !has(unit)) {
            let location = object.location_of(&model.name);
            problems.add(format!("{location}: has no price for unit {unit}, which other models have; add it"));
        }
    }
    problems.or(|| Some(()))
}

fn read_place(price: &Object<'_>, unknown: UnknownKeys) -> Result<ModelPlace, Problems> {
    let place = price.object("model")?;
    let place = place.ok_or_else(|| {
        let location = price.location_of("model");
        format!("{location} is missing: say where a request names its model, as {{\"json\": \"/model\"}}")
    })?;
    place.only(&PLACE_KEYS, unknown)?;
    match (place.get::<String>("json")?, place.get::<String>("param")?) {
        (Some(pointer), None) => {
            let pointer = Pointer::parse(&pointer);
            Ok(ModelPlace::Json(pointer.map_err(|problem| format!("{}: {problem}", place.location_of("json")))?))
        }
        (None, Some(param)) => Ok(ModelPlace::Param(param.into())),
        _ => Err(format!("{}: set exactly one of json and param", price.location_of("model")).into()),
    }
}

fn read_model(
    models: &Object<'_>,
    name: &str,
    place: Option<&ModelPlace>,
    unknown: UnknownKeys,
) -> Result<Model, Problems> {
    let model = models.object(name)?.ok_or_else(|| format!("{} is missing", models.location_of(name)))?;
    let mut problems = Problems::default();
    problems.keep(model.only(&MODEL_KEYS, unknown));
    let max = problems.keep(if model.has("max") { read_max(&model).map(Some) } else { Ok(None) });
    let min = problems.keep(if model.has("min") { read_min(&model, max.flatten()).map(Some) } else { Ok(None) });
    let units = problems.keep(read_units(&model));
    if units.as_ref().is_some_and(Vec::is_empty) {
        problems.add(format!("{}: has no prices; add units or per_million", models.location_of(name)));
    }
    let limits = units.as_ref().and_then(|units| problems.keep(read_limits(&model, units)));
    let of = place.map(|place| (name, place));
    let upstreams = units.as_ref().and_then(|units| problems.keep(upstream_file::read(&model, units, of, unknown)));
    problems.or(|| {
        Some(Model { name: name.into(), max: max?, min: min?, units: units?, limits: limits?, upstreams: upstreams? })
    })
}

fn read_limits(model: &Object<'_>, units: &Units) -> Result<Vec<(Box<str>, Count)>, Problems> {
    let Some(limits) = model.object("limits")? else { return Ok(Vec::new()) };
    let limit = |(unit, value): (&str, &RawValue)| {
        let location = limits.location_of(unit);
        let unit = known_unit(unit, units, &location)?;
        let limit: Result<u64, _> = serde_json::from_str(value.get());
        match limit {
            Ok(limit) if limit > 0 => Ok((unit, Count::from(limit))),
            _ => Err(format!("{location}: must be a whole number above 0")),
        }
    };
    let mut problems = Problems::default();
    let limits = problems.all(by_unit(&limits).map(limit));
    problems.or(|| limits)
}
