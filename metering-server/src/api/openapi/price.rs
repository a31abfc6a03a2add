//! The price of a metered route: a sentence for people, and the extension `x-price` for programs.
//!
//! Amounts are decimal text, not JSON numbers: most readers would turn those into binary floats.

use metering_core::Credits;
use metering_core::catalogue::{Pricing, Route, UsagePrice, VolumeTier};
use serde_json::{Value, json};

/// The sentence about a route's price.
pub(super) fn sentence(route: &Route) -> String {
    match &route.pricing {
        _ if !route.metered => "Not metered.".to_owned(),
        Pricing::PerRequest(price) => format!("Costs {price} credits per request."),
        Pricing::PerConnection(price) => format!("Costs {price} credits per connection."),
        Pricing::ByVolume(tiers) => format!("Costs, in credits per request: {tiers}."),
        Pricing::ByUsage(price) if price.is_by_model() => {
            format!("Costs what it uses, by model: {}.", route.price_in_words())
        }
        Pricing::ByUsage(price) => format!("Costs what it uses, {price}."),
        Pricing::Unknown => "Costs an amount that this version cannot read.".to_owned(),
        Pricing::PerLookback { param, .. } => format!("Costs {}, by `{param}`.", route.price_in_words()),
    }
}

/// The price as data: `per` is `request` or `connection`. If it depends on a parameter, `credits` is the lowest price,
/// `tiers` has the price up to each number of seconds, and `beyond` the price above the last one. If it depends on the
/// response's usage, `credits` is the maximum that is held, and `units` has the price of each unit; `models` has the
/// same for each model with its own prices, and `upstreams` for each upstream with its own. If it depends on the
/// request's number in the month, `credits` is the lowest price, and `volume` has the tiers, each but the last one with
/// the number of its last request.
pub(super) fn document(route: &Route) -> Value {
    let per = if matches!(route.pricing, Pricing::PerConnection(_)) { "connection" } else { "request" };
    let mut document = amount(route.price(0));
    document["per"] = per.into();
    if let Pricing::ByUsage(price) = &route.pricing {
        document["min"] = amount(price.min());
        document["units"] = units(price);
        add_upstreams(&mut document, price);
        if price.is_by_model() {
            document["models"] = price.models().map(|(name, price)| (name.to_owned(), model(price))).collect();
        }
        document["over"] = if price.may_exceed_hold() { "debt" } else { "cap" }.into();
    }
    if let Pricing::ByVolume(tiers) = &route.pricing {
        document = amount(tiers.iter().map(|tier| tier.price).min().unwrap_or_default());
        document["per"] = per.into();
        document["volume"] = tiers.iter().map(volume_tier).collect();
    }
    let Pricing::PerLookback { param, tiers, .. } = &route.pricing else { return document };
    let bounds: Vec<u64> = tiers.bounds().collect();
    let beyond = route.price(bounds.last().map_or(0, |most| most.saturating_add(1)));
    let prices = bounds.iter().map(|most| route.price(*most)).chain([beyond]);
    let mut document = amount(prices.min().unwrap_or(beyond));
    document["per"] = per.into();
    document["param"] = param.as_str().into();
    let tier = |most: &u64| {
        let mut tier = amount(route.price(*most));
        tier["max_seconds"] = (*most).into();
        tier
    };
    document["tiers"] = bounds.iter().map(tier).collect();
    document["beyond"] = amount(beyond);
    document
}

fn units(price: &UsagePrice) -> Value {
    price.units().map(|(unit, price)| (unit.to_owned(), price.to_string())).collect()
}

fn model(price: &UsagePrice) -> Value {
    let mut document = amount(price.max());
    document["min"] = amount(price.min());
    document["units"] = units(price);
    add_upstreams(&mut document, price);
    document
}

/// The price of a request that one of these upstreams serves.
fn add_upstreams(document: &mut Value, price: &UsagePrice) {
    let upstreams: serde_json::Map<String, Value> =
        price.upstreams().map(|(name, price)| (name.to_owned(), model(price))).collect();
    if !upstreams.is_empty() {
        document["upstreams"] = upstreams.into();
    }
}

fn volume_tier(tier: VolumeTier) -> Value {
    let mut document = amount(tier.price);
    if let Some(last) = tier.last {
        document["up_to"] = last.into();
    }
    document
}

/// An amount in credits, rounded to ten decimals, and in base calls, exactly.
fn amount(price: Credits) -> Value {
    let unit = Credits::BASE_CALL.atoms();
    let text = format!("{}.{:06}", price.atoms() / unit, price.atoms() % unit);
    let base_calls = text.trim_end_matches('0').trim_end_matches('.');
    json!({"credits": price.to_string(), "base_calls": base_calls})
}

#[cfg(test)]
mod tests {
    use metering_core::Catalogue;

    use super::*;

    #[test]
    fn prices_are_exact_text() {
        let lookback = r#""credit_weight": 5, "params": [{"name": "s", "in": "query", "type": "integer",
            "required": true}], "billing_modifier": {"type": "lookback_multiplier", "param": "s",
            "tiers": [{"max_seconds": 600, "multiplier": 2}, {"max_seconds": 3600, "multiplier": 4}],
            "overflow_multiplier": 1}"#;
        let by_usage = r#""price": {"max": "1", "min": "0.01", "units": {"bytes": "0.00000025"},
            "report": {"bytes": "bytes"}, "over": "debt"}"#;
        // the route's fields, its price
        let table = [
            (r#""credit_weight": 2.5"#, json!({"per": "request", "credits": "0.0003472222", "base_calls": "2.5"})),
            (r#""price": "1""#, json!({"per": "request", "credits": "1", "base_calls": "7200"})),
            (r#""price": "0""#, json!({"per": "request", "credits": "0", "base_calls": "0"})),
            (
                by_usage,
                json!({"per": "request", "credits": "1", "base_calls": "7200",
                    "min": {"credits": "0.01", "base_calls": "72"}, "units": {"bytes": "0.00000025"}, "over": "debt"}),
            ),
            (
                r#""price": {"max": "1", "model": {"json": "/m"}, "report": {"json": {"t": "/t"}}, "models": {
                    "a": {"units": {"t": "0.1"}}, "b*": {"max": "2", "units": {"t": "0.3"}}}}"#,
                json!({"per": "request", "credits": "2", "base_calls": "14400",
                    "min": {"credits": "0", "base_calls": "0"}, "units": {"t": "0.3"}, "over": "cap", "models": {
                        "a": {"credits": "1", "base_calls": "7200", "min": {"credits": "0", "base_calls": "0"},
                            "units": {"t": "0.1"}},
                        "b*": {"credits": "2", "base_calls": "14400", "min": {"credits": "0", "base_calls": "0"},
                            "units": {"t": "0.3"}}}}),
            ),
            (
                r#""price": {"max": "1", "report": {"header": "x-cost"}}"#,
                json!({"per": "request", "credits": "1", "base_calls": "7200",
                    "min": {"credits": "0", "base_calls": "0"}, "units": {}, "over": "cap"}),
            ),
            (
                r#""billing_modifier": {"type": "stream_session", "credits_per_connection": 0.01}"#,
                json!({"per": "connection", "credits": "0.01", "base_calls": "72"}),
            ),
            (
                r#""price": [{"up_to": 1000, "credits": "0"}, {"credits": "0.01"}]"#,
                json!({"per": "request", "credits": "0", "base_calls": "0", "volume": [
                    {"up_to": 1000, "credits": "0", "base_calls": "0"}, {"credits": "0.01", "base_calls": "72"}]}),
            ),
            (
                lookback,
                json!({"per": "request", "credits": "0.0006944444", "base_calls": "5", "param": "s", "tiers": [
                    {"max_seconds": 600, "credits": "0.0013888889", "base_calls": "10"},
                    {"max_seconds": 3600, "credits": "0.0027777778", "base_calls": "20"}],
                    "beyond": {"credits": "0.0006944444", "base_calls": "5"}}),
            ),
        ];
        for (fields, price) in table {
            let route = format!(r#"{{"path": "/x", "method": "GET", "metered": true, {fields}}}"#);
            let text = format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#);
            assert_eq!(document(&Catalogue::from_json(&text).unwrap().routes()[0]), price, "{fields}");
        }
    }
}
