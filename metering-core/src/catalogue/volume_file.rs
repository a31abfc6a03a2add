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
/// The location and text of each problem.
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

#[cfg(test)]
mod tests {
    use crate::Catalogue;
    use crate::catalogue::Pricing;

    fn read(fields: &str) -> Result<String, String> {
        let route = format!(r#"{{"path": "/x", "method": "GET", "metered": true, {fields}}}"#);
        let catalogue = Catalogue::from_json(&format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#));
        match &catalogue.map_err(|error| error.to_string())?.routes()[0].pricing {
            Pricing::ByVolume(tiers) => Ok(tiers.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_list_of_tiers_is_read() {
        let price = r#""price": [{"up_to": 1000, "credits": "0"}, {"up_to": 2000, "credits": 0.01, "x-why": "a"},
            {"credits": "0.001"}]"#;
        assert_eq!(read(price).unwrap(), "0 for requests 1 to 1000 of a month, 0.01 up to 2000, then 0.001");
    }

    #[test]
    fn every_problem_of_a_list_is_named() {
        let list = |tiers: &str| format!(r#""price": [{tiers}]"#);
        let first = r#"{"up_to": 5, "credits": "0"}"#;
        let last = r#"{"credits": "1"}"#;
        let many = format!(
            "{}, {last}",
            (1..=16).map(|n| format!(r#"{{"up_to": {n}, "credits": "1"}}"#)).collect::<Vec<_>>().join(", ")
        );
        // the route's fields, text in the error
        let table = [
            (list(""), "price: a list needs two or more tiers"),
            (list(last), "price: a list needs two or more tiers"),
            (list(first), "price: the last tier must not have up_to"),
            (list(&format!("{last}, {last}")), "every tier but the last one needs up_to"),
            (list(&format!("{first}, {first}, {last}")), "up_to must increase"),
            (
                list(&format!(r#"{{"up_to": 0, "credits": "0"}}, {last}"#)),
                "up_to must increase from tier to tier, from 1",
            ),
            (list(&format!(r#"{{"up_to": -1, "credits": "0"}}, {last}"#)), "price[0].up_to"),
            (list(&format!(r#"{{"up_to": 4294967296, "credits": "0"}}, {last}"#)), "price[0].up_to"),
            (list(&format!(r#"{{"up_to": 5}}, {last}"#)), "price[0].credits is missing"),
            (list(&format!(r#"{{"up_to": 5, "credits": "-1"}}, {last}"#)), "price[0].credits: must be 0 to"),
            (list(&format!(r#"{{"up_to": 5, "credits": "569"}}, {last}"#)), "price[0].credits: must be 0 to"),
            (list(&format!(r#"{{"up_to": 5, "credits": "free"}}, {last}"#)), "price[0].credits: not a decimal number"),
            (
                list(&format!(r#"{{"upto": 5, "credits": "0"}}, {last}"#)),
                "unknown key price[0].upto; did you mean up_to?",
            ),
            (list(&format!("7, {last}")), "price[0]"),
            (list(&many), "must have at most 16 tiers, not 17"),
            (format!(r#"{}, "credit_weight": 1"#, list(&format!("{first}, {last}"))), "credit_weight does not apply"),
            (
                format!(
                    r#"{}, "billing_modifier": {{"type": "stream_session", "credits_per_connection": 1}}"#,
                    list(&format!("{first}, {last}"))
                ),
                "billing_modifier does not apply",
            ),
        ];
        for (fields, expected) in table {
            let problem = read(&fields).unwrap_err();
            assert!(problem.contains(expected), "{fields}: {problem}");
        }
        let free = format!(r#""price": [{first}, {last}]"#).replace("\"price\"", "\"metered\": false, \"price\"");
        let route = format!(r#"{{"path": "/x", "method": "GET", {free}}}"#);
        let text = format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#);
        assert!(Catalogue::from_json(&text).unwrap_err().to_string().contains("have no effect"));
        // Another server's catalogue may have unknown tiers.
        let published = Catalogue::from_published_json(&text.replace("up_to", "above")).unwrap();
        assert_eq!(published.routes()[0].pricing, Pricing::Unknown);
    }
}
