//! The price of a tool, stated exactly in words.

use metering_core::Credits;
use metering_core::catalogue::{Pricing, Route};

/// The sentence about a route's price.
pub(super) fn price_sentence(route: &Route) -> String {
    match &route.pricing {
        Pricing::PerRequest(price) => format!("Price: {} per call.", amount(*price)),
        Pricing::PerConnection(price) => {
            format!("Price: {} per call, however many events it returns.", amount(*price))
        }
        Pricing::ByUsage(price) => format!("The price of a call depends on what it uses, {price}."),
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
    fn prices_by_usage_are_stated() {
        let sentence = |price: &str| {
            let route = format!(r#"{{"path": "/x", "method": "POST", "metered": true, "price": {price}}}"#);
            let text = format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#);
            price_sentence(&Catalogue::from_published_json(&text).unwrap().routes()[0])
        };
        assert_eq!(
            sentence(r#"{"max": "0.5", "units": {"tokens": "0.00000025"}, "report": {"json": {"tokens": "/usage"}}}"#),
            "The price of a call depends on what it uses, up to 0.5 credits: tokens 0.00000025 each."
        );
        assert_eq!(sentence(r#"{"newer": 1}"#), "Price: unknown; this version cannot read it.");
    }
}
