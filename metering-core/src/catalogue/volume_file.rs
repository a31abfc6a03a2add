//! Reads volume tiers of a catalogue file, and checks their rules.

use serde_json::value::RawValue;

use super::object::{Object, UnknownKeys};
use super::units::number_text;
use crate::catalogue::price::MAX_PRICE;
use crate::catalogue::problem::Problems;
use crate::catalogue::volume_tiers::VolumeTiers;
use crate::money::credits::Credits;

const TIER_KEYS: [&str; 2] = ["up_to", "credits"];

/// Reads a `price` field that is a list.
///
/// # Errors
/// The location of each problem, and what it is.
pub(super) fn read_tiers(endpoint: &Object<'_>, unknown: UnknownKeys) -> Result<VolumeTiers, Problems> {
    let mut problems = Problems::default();
    for other in ["credit_weight", "billing_modifier"].into_iter().filter(|key| endpoint.has(key)) {
        problems.add(format!("{other} does not apply to volume tiers; remove it, or write price as a string"));
    }
    if unknown == UnknownKeys::Refuse && matches!(endpoint.get::<bool>("metered"), Ok(Some(false))) {
        problems.add("volume tiers have no effect on a route with metered false");
    }
    let tiers = problems.all(endpoint.list("price")?.iter().map(|tier| read_tier(tier, unknown)));
    problems.or(|| tiers).and_then(|tiers| in_order(&tiers).map_err(Problems::from))
}

/// The last request of a tier, and the price of each.
type Tier = (Option<u32>, Credits);

fn read_tier(tier: &Object<'_>, unknown: UnknownKeys) -> Result<Tier, Problems> {
    let mut problems = Problems::default();
    problems.keep(tier.only(&TIER_KEYS, unknown));
    let last = problems.keep(tier.get::<u32>("up_to"));
    let price = problems.keep(read_price(tier));
    problems.or(|| Some((last?, price?)))
}

/// The price, as a string or as a number whose digits are read exactly as written.
fn read_price(tier: &Object<'_>) -> Result<Credits, String> {
    let location = tier.location_of("credits");
    let wrong = |problem: String| format!("{location}: {problem}; write credits as a string, such as \"0.01\"");
    let text = number_text(tier.require::<&RawValue>("credits")?);
    let price: Credits = text.and_then(|text| text.parse()).map_err(|error| wrong(error.to_string()))?;
    if price.is_negative() || price > MAX_PRICE {
        return Err(wrong(format!("must be 0 to {MAX_PRICE}, not {price}")));
    }
    Ok(price)
}

fn in_order(tiers: &[Tier]) -> Result<VolumeTiers, String> {
    let [bounded @ .., (last, rest)] = tiers else {
        return Err("price: a list needs two or more tiers; write a single price as a string".to_owned());
    };
    if last.is_some() {
        return Err("price: the last tier must not have up_to, because it is for all further requests".to_owned());
    }
    if bounded.is_empty() {
        return Err("price: a list needs two or more tiers; write a single price as a string".to_owned());
    }
    if tiers.len() > VolumeTiers::MAX {
        return Err(format!("price: must have at most {} tiers, not {}", VolumeTiers::MAX, tiers.len()));
    }
    let bounded: Option<Vec<_>> = bounded.iter().map(|(last, price)| Some(((*last)?, *price))).collect();
    let bounded = bounded.ok_or("price: every tier but the last one needs up_to, its last request in the month")?;
    VolumeTiers::new(bounded, *rest).ok_or_else(|| "price: up_to must increase from tier to tier, from 1".to_owned())
}
