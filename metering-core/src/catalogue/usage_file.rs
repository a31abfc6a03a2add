//! Reads the prices by usage of a catalogue file, and checks their rules.

use serde_json::value::RawValue;

use super::object::{Object, UnknownKeys, documentation};
use crate::catalogue::estimate::Estimate;
use crate::catalogue::nearest::nearest;
use crate::catalogue::pointer::Pointer;
use crate::catalogue::price::MAX_PRICE;
use crate::catalogue::problem::Problems;
use crate::catalogue::report::{Measures, Report, Source};
use crate::catalogue::units::{UnitPrice, number_text};
use crate::catalogue::usage_price::{Missing, Over, UsagePrice};
use crate::money::credits::Credits;

const PRICE_KEYS: [&str; 7] = ["max", "min", "units", "report", "missing", "over", "estimate"];
const REPORT_KEYS: [&str; 3] = ["header", "json", "bytes"];
const ESTIMATE_KEYS: [&str; 3] = ["json", "bytes", "times"];
/// Each unit is looked up in every response.
const UNITS_MAX: usize = 16;
/// A unit's name is part of messages and of requests that capture a hold.
const UNIT_BYTES_MAX: usize = 64;

type Units = Vec<(Box<str>, UnitPrice)>;

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

fn member<'j>(object: &Object<'j>, key: &str) -> Result<Option<&'j RawValue>, String> {
    Ok(object.get::<&RawValue>(key)?.filter(|value| value.get() != "null"))
}

/// The members of an object that maps units to something. `x-...` and `$...` are free to use, as everywhere.
fn by_unit<'o, 'j>(object: &'o Object<'j>) -> impl Iterator<Item = (&'o str, &'j RawValue)> {
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
fn known_unit(unit: &str, units: &Units, location: &str) -> Result<Box<str>, String> {
    if units.iter().any(|(name, _)| **name == *unit) {
        return Ok(unit.into());
    }
    let hint = match nearest(unit, units.iter().map(|(name, _)| &**name)) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "add its price to units".to_owned(),
    };
    Err(format!("{location}: unit {unit} has no price; {hint}"))
}

fn read_report(price: &Object<'_>, units: &Units, unknown: UnknownKeys) -> Result<Source, Problems> {
    let report = price.object("report")?.ok_or_else(|| format!("{} is missing", price.location_of("report")))?;
    let mut problems = Problems::default();
    problems.keep(report.only(&REPORT_KEYS, unknown));
    let source = problems.keep(read_source(price, &report, units));
    let source = source.and_then(|source| problems.keep(check_reported(price, units, source)));
    problems.or(|| source)
}

fn read_source(price: &Object<'_>, report: &Object<'_>, units: &Units) -> Result<Source, Problems> {
    let given: Vec<&str> = REPORT_KEYS.into_iter().filter(|key| report.has(key)).collect();
    Ok(match given[..] {
        ["header"] => Source::Headers(measures(report, "header", units, header_name)?),
        ["json"] => Source::Json(measures(report, "json", units, Pointer::parse)?),
        ["bytes"] => {
            Source::Bytes(known_unit(&report.require::<String>("bytes")?, units, &report.location_of("bytes"))?)
        }
        _ => return Err(format!("{}: set exactly one of header, json and bytes", price.location_of("report")).into()),
    })
}

/// Checks that every unit with a price is reported.
fn check_reported(price: &Object<'_>, units: &Units, source: Source) -> Result<Source, Problems> {
    let reported = |unit: &str| match &source {
        Source::Headers(Measures::Counts(counts)) => counts.iter().any(|(name, _)| **name == *unit),
        Source::Json(Measures::Counts(counts)) => counts.iter().any(|(name, _)| **name == *unit),
        Source::Bytes(name) => **name == *unit,
        Source::Headers(Measures::Credits(_)) | Source::Json(Measures::Credits(_)) | Source::Unknown => false,
    };
    if matches!(source, Source::Headers(Measures::Credits(_)) | Source::Json(Measures::Credits(_))) && !units.is_empty()
    {
        return Err(format!(
            "{}: has no effect, because the report is in credits; remove it, or report a count for each unit",
            price.location_of("units")
        )
        .into());
    }
    let mut problems = Problems::default();
    for (unit, _) in units.iter().filter(|(unit, _)| !reported(unit)) {
        problems.add(format!("{}: unit {unit} is priced but not reported", price.location_of("report")));
    }
    problems.or(|| Some(source))
}

/// Where a report has credits, or the count of each unit.
fn measures<T>(
    report: &Object<'_>,
    key: &str,
    units: &Units,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Measures<T>, Problems> {
    let place = |text: &str, location: String| parse(text).map_err(|problem| format!("{location}: {problem}"));
    if member(report, key)?.is_some_and(|value| !value.get().starts_with('{')) {
        return Ok(Measures::Credits(place(&report.require::<String>(key)?, report.location_of(key))?));
    }
    let object = report.object(key)?.ok_or_else(|| format!("{} is missing", report.location_of(key)))?;
    let mut problems = Problems::default();
    if by_unit(&object).next().is_none() {
        problems.add(format!("{}: must have at least one unit", report.location_of(key)));
    }
    let counts = problems.all(by_unit(&object).map(|(unit, value)| {
        let location = object.location_of(unit);
        let unit = known_unit(unit, units, &location)?;
        let texts = texts(&object, &unit, value)?;
        if texts.is_empty() {
            return Err(format!("{location}: must not be empty"));
        }
        let counts = texts.iter().map(|text| Ok((unit.clone(), place(text, location.clone())?)));
        counts.collect::<Result<Vec<_>, String>>()
    }));
    problems.or(|| Some(Measures::Counts(counts?.into_iter().flatten().collect())))
}

/// A string, or a list of them.
fn texts(object: &Object<'_>, unit: &str, value: &RawValue) -> Result<Vec<String>, String> {
    if value.get().starts_with('[') { object.require(unit) } else { Ok(vec![object.require(unit)?]) }
}

/// A header's name in lower case. A name is a token: RFC 9110, section 5.1.
fn header_name(text: &str) -> Result<Box<str>, String> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if text.is_empty() || text.len() > 256 || !text.bytes().all(token) {
        return Err(format!("{text:?} is not the name of a header"));
    }
    Ok(text.to_ascii_lowercase().into())
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
        problems.all(by_unit(object).map(|(unit, value)| {
            Ok::<_, String>((known_unit(unit, units, &object.location_of(unit))?, pointers(object, unit, value)?))
        }))
    });
    let known = |unit: String| known_unit(&unit, units, &estimate.location_of("bytes"));
    let bytes = problems.keep(estimate.get::<String>("bytes").and_then(|unit| unit.map(known).transpose()));
    let parsed =
        |text: String| Pointer::parse(&text).map_err(|problem| format!("{}: {problem}", estimate.location_of("times")));
    let times = problems.keep(estimate.get::<String>("times").and_then(|text| text.map(parsed).transpose()));
    if let (Some(json), Some(bytes)) = (&json, &bytes) {
        for (unit, _) in json.iter().filter(|(unit, _)| Some(unit) == bytes.as_ref()) {
            let location = price.location_of("estimate");
            problems.add(format!("{location}: unit {unit} is estimated twice, by json and by bytes"));
        }
        if json.is_empty() && bytes.is_none() {
            problems.add(format!("{}: must estimate units by json or bytes", price.location_of("estimate")));
        }
    }
    problems.or(|| Some(Some(Estimate { json: json?, bytes: bytes?, times: times? })))
}

/// A pointer, or a list of them.
fn pointers(object: &Object<'_>, unit: &str, value: &RawValue) -> Result<Vec<Pointer>, String> {
    let texts = texts(object, unit, value)?;
    if texts.is_empty() {
        return Err(format!("{}: must have at least one JSON pointer", object.location_of(unit)));
    }
    let parse = |text: &String| Pointer::parse(text).map_err(|error| format!("{}: {error}", object.location_of(unit)));
    texts.iter().map(parse).collect()
}

#[cfg(test)]
mod tests;
