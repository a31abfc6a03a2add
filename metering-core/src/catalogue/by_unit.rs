//! Reads a price's units: their names and prices, and members that are by unit.

use serde_json::value::RawValue;

use super::object::{Object, texts};
use crate::catalogue::nearest::nearest;
use crate::catalogue::pointer::Pointer;
use crate::catalogue::problem::Problems;
use crate::catalogue::units::{UnitPrice, number_text};

/// Each unit is looked up in every response.
const UNITS_MAX: usize = 16;
/// A unit's name is part of messages and of requests that capture a hold.
const UNIT_BYTES_MAX: usize = 64;

/// The keys with prices of units, and whether these are for a million.
const UNIT_KEYS: [(&str, bool); 2] = [("units", false), ("per_million", true)];

pub(super) type Units = Vec<(Box<str>, UnitPrice)>;

/// The units of a price, each with the price of one, or of a million.
pub(super) fn read_units(price: &Object<'_>) -> Result<Units, Problems> {
    let (mut problems, mut units) = (Problems::default(), Units::new());
    for (key, is_million) in UNIT_KEYS {
        let Some(object) = problems.keep(price.object(key)).flatten() else { continue };
        if !(1..=UNITS_MAX).contains(&by_unit(&object).count()) {
            problems.add(format!("{}: must have 1 to {UNITS_MAX} units", price.location_of(key)));
        }
        let read = problems.all(by_unit(&object).map(|(name, value)| read_unit(&object, name, value, is_million)));
        for (name, unit_price) in read.into_iter().flatten() {
            if units.iter().any(|(known, _)| *known == name) {
                let location = price.location_of(key);
                problems.add(format!("{location}: unit {name} is also priced in units; remove one of the two"));
            }
            units.push((name, unit_price));
        }
    }
    let has_both = UNIT_KEYS.iter().all(|(key, _)| price.has(key));
    if has_both && units.len() > UNITS_MAX {
        problems.add(format!("{}: must have 1 to {UNITS_MAX} units", price.location_of("per_million")));
    }
    problems.or(|| Some(units))
}

fn read_unit(
    object: &Object<'_>,
    name: &str,
    value: &RawValue,
    is_million: bool,
) -> Result<(Box<str>, UnitPrice), String> {
    let location = object.location_of(name);
    if !is_unit_name(name) {
        return Err(format!(
            "{location}: a unit's name has 1 to {UNIT_BYTES_MAX} characters a-z, 0-9 and _, and \
            begins with a letter"
        ));
    }
    let parse = |text: String| if is_million { UnitPrice::of_million(&text) } else { text.parse() };
    let price = number_text(value).and_then(parse).map_err(|error| {
        let range = if is_million { "with up to 12 decimals" } else { "of 0 to 1000 with up to 18 decimals" };
        format!("{location}: {error}; write credits as a string {range}")
    })?;
    Ok((name.into(), price))
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

/// The members of an object that maps units to something. `x-...` and `$...` are free to use, as everywhere.
pub(super) fn by_unit<'o, 'j>(object: &'o Object<'j>) -> impl Iterator<Item = (&'o str, &'j RawValue)> {
    object.members().filter(|(name, _)| !name.starts_with("x-") && !name.starts_with('$'))
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
