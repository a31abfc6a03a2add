//! Reads the prices by usage of a catalogue file, and checks their rules.

use serde_json::value::RawValue;

use super::object::{Object, UnknownKeys, documentation};
use crate::catalogue::estimate::Estimate;
use crate::catalogue::nearest::nearest;
use crate::catalogue::pointer::Pointer;
use crate::catalogue::price::MAX_PRICE;
use crate::catalogue::problem::Problems;
use crate::catalogue::report::{Report, Source};
use crate::catalogue::report_file::read_report;
use crate::catalogue::units::{UnitPrice, number_text};
use crate::catalogue::usage_price::{Missing, Over, UsagePrice};
use crate::money::credits::Credits;

const PRICE_KEYS: [&str; 9] = ["max", "min", "units", "report", "missing", "over", "estimate", "failed", "delivered"];
const ESTIMATE_KEYS: [&str; 3] = ["json", "bytes", "times"];
/// Each unit is looked up in every response.
const UNITS_MAX: usize = 16;
/// A unit's name is part of messages and of requests that capture a hold.
const UNIT_BYTES_MAX: usize = 64;

pub(super) type Units = Vec<(Box<str>, UnitPrice)>;

/// Reads the object of a `price` field.
///
/// # Errors
/// The location of each problem, and what it is.
pub(super) fn read_price(price: &Object<'_>, unknown: UnknownKeys) -> Result<UsagePrice, Problems> {
    let mut problems = Problems::default();
    problems.keep(price.only(&PRICE_KEYS, unknown));
    let max = problems.keep(read_max(price));
    let min = problems.keep(read_min(price, max));
    let units = problems.keep(read_units(price));
    // What is reported and estimated is checked against the units, if those could be read.
    let of_units = units.as_ref().map(|units| {
        // Another server's catalogue may have kinds of reports that are not known here. Its price can still be shown.
        let source = problems.keep(documentation(read_report(price, units, unknown).map(Some), unknown));
        let estimate = problems.keep(documentation(read_estimate(price, units, unknown), unknown));
        (source.flatten().unwrap_or(Source::Unknown), estimate.flatten())
    });
    let missing = [("hold", Missing::Hold), ("minimum", Missing::Minimum), ("release", Missing::Release)];
    let over = [("cap", Over::Cap), ("debt", Over::Debt)];
    let missing = problems.keep(documentation(choice(price, "missing", &missing), unknown));
    let over = problems.keep(documentation(choice(price, "over", &over), unknown));
    problems.or(|| {
        let (source, estimate) = of_units?;
        Some(UsagePrice {
            max: max?,
            min: min?,
            units: units?,
            report: Report { source },
            missing: missing?.unwrap_or_default(),
            over: over?.unwrap_or_default(),
            estimate,
        })
    })
}

fn read_max(price: &Object<'_>) -> Result<Credits, String> {
    let max = credits(price, "max")?.ok_or_else(|| format!("{} is missing", price.location_of("max")))?;
    if !max.is_positive() || max > MAX_PRICE {
        return Err(format!("{}: must be above 0 and at most {MAX_PRICE}, not {max}", price.location_of("max")));
    }
    Ok(max)
}

fn read_min(price: &Object<'_>, max: Option<Credits>) -> Result<Credits, String> {
    let (min, max) = (credits(price, "min")?.unwrap_or_default(), max.unwrap_or(MAX_PRICE));
    if min.is_negative() || min > max {
        return Err(format!("{}: must be 0 to max, {max}, not {min}", price.location_of("min")));
    }
    Ok(min)
}

/// An amount of credits, as a string or as a number whose digits are read exactly as written.
fn credits(object: &Object<'_>, key: &str) -> Result<Option<Credits>, String> {
    let Some(value) = member(object, key)? else { return Ok(None) };
    let amount = number_text(value).and_then(|text| text.parse());
    let wrong = |error| format!("{}: {error}; write credits as a string, such as \"0.01\"", object.location_of(key));
    amount.map(Some).map_err(wrong)
}

pub(super) fn member<'j>(object: &Object<'j>, key: &str) -> Result<Option<&'j RawValue>, String> {
    Ok(object.get::<&RawValue>(key)?.filter(|value| value.get() != "null"))
}

/// The members of an object that maps units to something. `x-...` and `$...` are free to use, as everywhere.
pub(super) fn by_unit<'o, 'j>(object: &'o Object<'j>) -> impl Iterator<Item = (&'o str, &'j RawValue)> {
    object.members().filter(|(name, _)| !name.starts_with("x-") && !name.starts_with('$'))
}

fn read_units(price: &Object<'_>) -> Result<Units, Problems> {
    let Some(object) = price.object("units")? else { return Ok(Vec::new()) };
    let unit = |(name, value): (&str, &RawValue)| {
        let location = object.location_of(name);
        if !is_unit_name(name) {
            return Err(format!(
                "{location}: a unit's name has 1 to {UNIT_BYTES_MAX} characters a-z, 0-9 and _, and \
                begins with a letter"
            ));
        }
        let price: Result<UnitPrice, _> = number_text(value).and_then(|text| text.parse());
        let price = price.map_err(|error| {
            format!("{location}: {error}; write credits as a string of 0 to 1000 with up to 18 decimals")
        })?;
        Ok((name.into(), price))
    };
    let mut problems = Problems::default();
    if !(1..=UNITS_MAX).contains(&by_unit(&object).count()) {
        problems.add(format!("{}: must have 1 to {UNITS_MAX} units", price.location_of("units")));
    }
    let units = problems.all(by_unit(&object).map(unit));
    problems.or(|| units)
}

fn is_unit_name(name: &str) -> bool {
    name.len() <= UNIT_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Checks that a unit has a price.
pub(super) fn known_unit(unit: &str, units: &Units, location: &str) -> Result<Box<str>, String> {
    if units.iter().any(|(name, _)| **name == *unit) {
        return Ok(unit.into());
    }
    let hint = match nearest(unit, units.iter().map(|(name, _)| &**name)) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "add its price to units".to_owned(),
    };
    Err(format!("{location}: unit {unit} has no price; {hint}"))
}

/// One of a few words.
pub(super) fn choice<T: Copy>(price: &Object<'_>, key: &str, choices: &[(&str, T)]) -> Result<Option<T>, String> {
    let Some(word) = price.get::<String>(key)? else { return Ok(None) };
    let known = choices.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice);
    let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    known.map(Some).ok_or_else(|| format!("{}: must be one of {}, not {word}", price.location_of(key), names()))
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
    problems.or(|| Some(Some(Estimate { json: json?, bytes: bytes?, times: times? })))
}

/// A pointer, or a list of them.
pub(super) fn pointers(object: &Object<'_>, key: &str) -> Result<Vec<Pointer>, String> {
    let texts = texts(object, key)?;
    if texts.is_empty() {
        return Err(format!("{}: must have at least one JSON pointer", object.location_of(key)));
    }
    let parse = |text: &String| Pointer::parse(text).map_err(|error| format!("{}: {error}", object.location_of(key)));
    texts.iter().map(parse).collect()
}

/// A string, or a list of them; empty when it is missing.
pub(super) fn texts(object: &Object<'_>, key: &str) -> Result<Vec<String>, String> {
    match member(object, key)? {
        None => Ok(Vec::new()),
        Some(value) if value.get().starts_with('[') => object.require(key),
        Some(_) => Ok(vec![object.require(key)?]),
    }
}

#[cfg(test)]
mod tests;
