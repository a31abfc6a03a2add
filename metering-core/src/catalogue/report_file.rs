//! Reads the report of a price by usage from a catalogue file, with the places that show that a response failed or how
//! much of it was delivered.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::object::{Object, UnknownKeys, choice, member, texts};
use crate::catalogue::amount::{Amount, Measures};
use crate::catalogue::by_unit::{Units, by_unit, known_unit, pointers};
use crate::catalogue::json_report::{Combine, Declared, JsonReport, Texts};
use crate::catalogue::pointer::Pointer;
use crate::catalogue::problem::Problems;
use crate::catalogue::report::Source;

const REPORT_KEYS: [&str; 4] = ["header", "json", "bytes", "combine"];
const KINDS: [&str; 3] = ["header", "json", "bytes"];
const AMOUNT_KEYS: [&str; 3] = ["plus", "minus", "max"];
/// Lists and sums within each other. Bounds the recursion.
const NESTED_MAX: u32 = 8;

pub(super) fn read_report(price: &Object<'_>, units: &Units, unknown: UnknownKeys) -> Result<Source, Problems> {
    let report = price.object("report")?.ok_or_else(|| format!("{} is missing", price.location_of("report")))?;
    let mut problems = Problems::default();
    problems.keep(report.only(&REPORT_KEYS, unknown));
    let source = problems.keep(read_source(price, &report, units, unknown));
    let source = source.and_then(|source| problems.keep(check_reported(price, units, source)));
    problems.or(|| source)
}

fn read_source(
    price: &Object<'_>,
    report: &Object<'_>,
    units: &Units,
    unknown: UnknownKeys,
) -> Result<Source, Problems> {
    let given: Vec<&str> = KINDS.into_iter().filter(|key| report.has(key)).collect();
    let source = match given[..] {
        ["json"] => return read_json(price, report, units, unknown),
        ["header"] => Source::Headers(measures(report, "header", units, header_name, unknown)?),
        ["bytes"] => {
            Source::Bytes(known_unit(&report.require::<String>("bytes")?, units, &report.location_of("bytes"))?)
        }
        _ => return Err(format!("{}: set exactly one of header, json and bytes", price.location_of("report")).into()),
    };
    let without_effect = [("combine", report), ("failed", price), ("delivered", price)];
    let mut problems = Problems::default();
    for (key, object) in without_effect.into_iter().filter(|(key, object)| object.has(key)) {
        let location = object.location_of(key);
        problems.add(format!("{location}: has no effect, because the report is not in json; remove it"));
    }
    problems.or(|| Some(source))
}

fn read_json(price: &Object<'_>, report: &Object<'_>, units: &Units, unknown: UnknownKeys) -> Result<Source, Problems> {
    let mut problems = Problems::default();
    let measures = problems.keep(measures(report, "json", units, Pointer::parse, unknown));
    let combines = [("max", Combine::Max), ("last", Combine::Last), ("sum", Combine::Sum)];
    let combine = problems.keep(choice(report, "combine", &combines));
    let failed = problems.keep(read_failed(price));
    let delivered = problems.keep(read_delivered(price, units));
    problems.or(|| {
        let (measures, combine) = (measures?, combine?.unwrap_or_default());
        let declared = Declared { measures, combine, failed: failed?, delivered: delivered? };
        Some(Source::Json(Arc::new(JsonReport::new(declared))))
    })
}

/// The pointers to failures. An empty list counts as none.
fn read_failed(price: &Object<'_>) -> Result<Option<Vec<Pointer>>, String> {
    match member(price, "failed")? {
        None => Ok(None),
        Some(_) if texts(price, "failed")?.is_empty() => Ok(Some(Vec::new())),
        Some(_) => pointers(price, "failed").map(Some),
    }
}

/// For each unit, the pointers to texts whose length bounds its count.
fn read_delivered(price: &Object<'_>, units: &Units) -> Result<Option<Texts>, Problems> {
    let Some(object) = price.object("delivered")? else { return Ok(None) };
    let mut problems = Problems::default();
    if units.is_empty() || by_unit(&object).next().is_none() {
        let location = price.location_of("delivered");
        problems.add(format!("{location}: must name at least one of units, with pointers to its texts"));
    }
    let of_unit = |(unit, _): (&str, &RawValue)| {
        Ok::<_, String>((known_unit(unit, units, &object.location_of(unit))?, pointers(&object, unit)?))
    };
    let delivered = problems.all(by_unit(&object).map(of_unit));
    problems.or(|| delivered.map(Some))
}

/// Checks that every unit with a price is reported.
fn check_reported(price: &Object<'_>, units: &Units, source: Source) -> Result<Source, Problems> {
    fn has<T>(measures: &Measures<T>, unit: &str) -> bool {
        matches!(measures, Measures::Counts(counts) if counts.iter().any(|(name, _)| **name == *unit))
    }
    let reported = |unit: &str| match &source {
        Source::Headers(measures) => has(measures, unit),
        Source::Json(report) => has(&report.measures, unit),
        Source::Bytes(name) => **name == *unit,
        Source::Unknown => false,
    };
    let in_credits = match &source {
        Source::Headers(measures) => measures.is_in_credits(),
        Source::Json(report) => report.measures.is_in_credits(),
        Source::Bytes(_) | Source::Unknown => false,
    };
    if in_credits && !units.is_empty() {
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
    unknown: UnknownKeys,
) -> Result<Measures<T>, Problems> {
    let place = |text: &str, location: &str| parse(text).map_err(|problem| format!("{location}: {problem}"));
    if member(report, key)?.is_some_and(|value| !value.get().starts_with('{')) {
        return Ok(Measures::Credits(place(&report.require::<String>(key)?, &report.location_of(key))?));
    }
    let object = report.object(key)?.ok_or_else(|| format!("{} is missing", report.location_of(key)))?;
    let mut problems = Problems::default();
    if by_unit(&object).next().is_none() {
        problems.add(format!("{}: must have at least one unit", report.location_of(key)));
    }
    let counts = problems.all(by_unit(&object).map(|(unit, value)| {
        let location = object.location_of(unit);
        let unit = known_unit(unit, units, &location)?;
        Ok::<_, Problems>((unit, amount(value, &location, &place, unknown, 0)?))
    }));
    problems.or(|| Some(Measures::Counts(counts?)))
}

/// A place, a list whose first present place counts, `{"plus": [...], "minus": [...]}`, or `{"max": [...]}`.
fn amount<T>(
    value: &RawValue,
    location: &str,
    place: &impl Fn(&str, &str) -> Result<T, String>,
    unknown: UnknownKeys,
    nested: u32,
) -> Result<Amount<T>, Problems> {
    let text = value.get();
    if nested > NESTED_MAX {
        return Err(format!("{location}: more than {NESTED_MAX} lists within each other").into());
    }
    let all = |values: Vec<&RawValue>, location: &str| {
        let mut problems = Problems::default();
        let amounts = problems.all(values.into_iter().map(|value| amount(value, location, place, unknown, nested + 1)));
        problems.or(|| amounts)
    };
    let list = |value: &RawValue, location: &str| {
        let values: Vec<&RawValue> = if value.get().starts_with('[') {
            serde_json::from_str(value.get()).map_err(|error| format!("{location}: {error}"))?
        } else {
            return Ok(vec![amount(value, location, place, unknown, nested + 1)?]);
        };
        if values.is_empty() {
            return Err(Problems::from(format!("{location}: must not be empty")));
        }
        all(values, location)
    };
    if text.starts_with('[') {
        return Ok(Amount::First(list(value, location)?));
    }
    if !text.starts_with('{') {
        let text: String = serde_json::from_str(text)
            .map_err(|_| format!("{location}: must be a string, a list, or an object with plus and minus, or max"))?;
        return Ok(Amount::At(place(&text, location)?));
    }
    let sum = Object::read(text, format!("{location}."))?;
    sum.only(&AMOUNT_KEYS, unknown)?;
    let terms = |key| member(&sum, key)?.map_or(Ok(Vec::new()), |value| list(value, &sum.location_of(key)));
    let (plus, minus, max) = (terms("plus")?, terms("minus")?, terms("max")?);
    if !max.is_empty() {
        return match plus.is_empty() && minus.is_empty() {
            true => Ok(Amount::Largest(max)),
            false => Err(format!("{location}: max must be the only member; put a sum into its list").into()),
        };
    }
    if plus.is_empty() {
        return Err(format!("{} is missing: say what is added up", sum.location_of("plus")).into());
    }
    Ok(Amount::Sum { plus, minus })
}

/// A header's name in lower case. A name is a token: RFC 9110, section 5.1.
fn header_name(text: &str) -> Result<Box<str>, String> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if text.is_empty() || text.len() > 256 || !text.bytes().all(token) {
        return Err(format!("{text:?} is not the name of a header"));
    }
    Ok(text.to_ascii_lowercase().into())
}
