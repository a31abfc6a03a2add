//! Reads the amounts of credits of a price by usage.

use super::object::{Object, member};
use crate::catalogue::price::MAX_PRICE;
use crate::catalogue::units::number_text;
use crate::money::credits::Credits;

/// The most that is held.
pub(super) fn read_max(price: &Object<'_>) -> Result<Credits, String> {
    let max = credits(price, "max")?.ok_or_else(|| format!("{} is missing", price.location_of("max")))?;
    if !max.is_positive() || max > MAX_PRICE {
        return Err(format!("{}: must be above 0 and at most {MAX_PRICE}, not {max}", price.location_of("max")));
    }
    Ok(max)
}

/// The minimum cost of a request.
pub(super) fn read_min(price: &Object<'_>, max: Option<Credits>) -> Result<Credits, String> {
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
