//! The price of a tool, stated exactly in words.

use metering_core::Credits;
use metering_core::catalogue::{Pricing, Route, VolumeTier, VolumeTiers};

/// The sentence about a route's price.
pub(super) fn price_sentence(route: &Route) -> String {
    match &route.pricing {
        Pricing::PerRequest(price) => format!("Price: {} per call.", amount(*price)),
        Pricing::PerConnection(price) => {
            format!("Price: {} per call, however many events it returns.", amount(*price))
        }
        Pricing::ByVolume(tiers) => by_volume(tiers),
        Pricing::ByUsage(price) if price.is_by_model() => {
            format!("The price of a call depends on its model and on its usage: {}.", route.price_in_words())
        }
        Pricing::ByUsage(price) => format!("The price of a call depends on its usage, {price}."),
        Pricing::Unknown => "Price: unknown; this version cannot read it.".to_owned(),
        Pricing::PerLookback { param, tiers, .. } => {
            let bounds: Vec<u64> = tiers.bounds().collect();
            let steps = bounds.iter().map(|most| format!("up to {most} seconds {}", amount(route.price(*most))));
            let steps: Vec<String> = steps.collect();
            let beyond = bounds.last().map_or(0, |most| most.saturating_add(1));
            format!(
                "Price per call by `{param}`, how far it looks back: {}; beyond that {}.",
                steps.join(", "),
                amount(route.price(beyond))
            )
        }
    }
}

/// Prices by the number of the call in the account's month.
fn by_volume(tiers: &VolumeTiers) -> String {
    let step = |VolumeTier { last, price, .. }: VolumeTier| match last {
        Some(last) => format!("up to call {last} {}", amount(price)),
        None => format!("then {}", amount(price)),
    };
    let steps: Vec<String> = tiers.iter().map(step).collect();
    format!("Price per call by its number in the calendar month: {}.", steps.join(", "))
}

/// An exact amount. Most prices are not finite decimals in credits, since a credit is 7200 base calls, but every price
/// is some decimal number of base calls.
fn amount(price: Credits) -> String {
    match price {
        Credits::ZERO => "nothing".to_owned(),
        one if Some(one) == Credits::from_whole(1) => "1 credit".to_owned(),
        whole if whole.has_eight_decimals() => format!("{whole} credits"),
        other => format!("{} × 1/7200 credit ({other} credits, rounded)", base_calls(other)),
    }
}

/// An amount in base calls, as a decimal.
fn base_calls(amount: Credits) -> String {
    let unit = Credits::BASE_CALL.atoms();
    let (whole, millionths) = (amount.atoms() / unit, amount.atoms() % unit);
    let text = format!("{whole}.{millionths:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use metering_core::Catalogue;

    use super::*;

    #[test]
    fn amounts_are_exact_or_marked_as_rounded() {
        let table = [
            (0, "nothing"),
            (1_000_000, "1 × 1/7200 credit (0.0001388889 credits, rounded)"),
            (10_000_000, "10 × 1/7200 credit (0.0013888889 credits, rounded)"),
            (2_500_000, "2.5 × 1/7200 credit (0.0003472222 credits, rounded)"),
            (1, "0.000001 × 1/7200 credit (0.0000000001 credits, rounded)"),
            (7_200_000_000, "1 credit"),
            (3_600_000_000, "0.5 credits"),
            (72, "0.00000001 credits"),
        ];
        for (atoms, text) in table {
            assert_eq!(amount(Credits::from_atoms(atoms)), text, "{atoms}");
        }
    }

    #[test]
    fn prices_by_usage_and_volume_are_stated() {
        let sentence = |price: &str| {
            let route = format!(r#"{{"path": "/x", "method": "POST", "metered": true, "price": {price}}}"#);
            let text = format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#);
            price_sentence(&Catalogue::from_published_json(&text).unwrap().routes()[0])
        };
        assert_eq!(
            sentence(r#"{"max": "0.5", "units": {"tokens": "0.00000025"}, "report": {"json": {"tokens": "/usage"}}}"#),
            "The price of a call depends on its usage, up to 0.5 credits: tokens 0.00000025 each."
        );
        assert_eq!(
            sentence(
                r#"{"max": "1", "model": {"json": "/model"}, "report": {"json": {"tokens": "/usage"}},
                    "models": {"small": {"per_million": {"tokens": "0.25"}}, "large*": {"per_million": {"tokens": "10"}}}}"#
            ),
            "The price of a call depends on its model and on its usage: small: 0.25 credits per million tokens; large*: \
             10 credits per million tokens."
        );
        assert_eq!(
            sentence(r#"[{"up_to": 1000, "credits": "0"}, {"credits": "0.001"}]"#),
            "Price per call by its number in the calendar month: up to call 1000 nothing, then 0.001 credits."
        );
        assert_eq!(sentence(r#"[{"newer": 1}]"#), "Price: unknown; this version cannot read it.");
        assert_eq!(sentence(r#"{"newer": 1}"#), "Price: unknown; this version cannot read it.");
    }
}
