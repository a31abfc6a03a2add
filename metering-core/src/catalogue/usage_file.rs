//! Reads the prices by usage of a catalogue file, and checks their rules.

use super::object::{Object, UnknownKeys, choice, documentation, member, texts};
use crate::catalogue::by_unit::{Units, by_unit, known_unit, pointers, read_units};
use crate::catalogue::estimate::Estimate;
use crate::catalogue::price::MAX_PRICE;
use crate::catalogue::problem::Problems;
use crate::catalogue::report::{Report, Source};
use crate::catalogue::report_file::read_report;
use crate::catalogue::units::number_text;
use crate::catalogue::usage_price::{Missing, Over, UsagePrice};
use crate::money::credits::Credits;

const PRICE_KEYS: [&str; 10] =
    ["max", "min", "units", "report", "missing", "over", "estimate", "failed", "delivered", "tokens"];
const ESTIMATE_KEYS: [&str; 3] = ["json", "bytes", "times"];

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
        let tokens = problems.keep(documentation(read_tokens(price, units), unknown));
        (source.flatten().unwrap_or(Source::Unknown), estimate.flatten(), tokens.flatten())
    });
    let missing = [("hold", Missing::Hold), ("minimum", Missing::Minimum), ("release", Missing::Release)];
    let over = [("cap", Over::Cap), ("debt", Over::Debt)];
    let missing = problems.keep(documentation(choice(price, "missing", &missing), unknown));
    let over = problems.keep(documentation(choice(price, "over", &over), unknown));
    problems.or(|| {
        let (source, estimate, tokens) = of_units?;
        Some(UsagePrice {
            max: max?,
            min: min?,
            units: units?,
            report: Report { source },
            missing: missing?.unwrap_or_default(),
            over: over?.unwrap_or_default(),
            estimate,
            tokens,
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
    problems.or(|| Some(Some(Estimate { json: json?, bytes: bytes?, times: times? })))
}

#[cfg(test)]
mod tests;
