//! The prices of several routes in one table: all requests are quoted alike, so that readers can compare them.

use rust_decimal::Decimal;

use crate::catalogue::price::Pricing;
use crate::catalogue::price_words::{MILLION, THOUSAND, lot_of};
use crate::catalogue::route::Route;
use crate::money::credits::Credits;

/// Prices are not quoted for so many that one exceeds this many credits.
const CREDITS_MAX: i64 = 10_000;

/// The prices of the routes of one table, each as in [`Route::price_in_words`], but all of them for the same number of
/// requests, so that they can be compared.
///
/// ```
/// use metering_core::Catalogue;
/// use metering_core::catalogue::prices_in_words;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [
///         {"path": "/block", "method": "GET", "metered": true, "price": "0.0005"},
///         {"path": "/search", "method": "GET", "metered": true, "price": "0.01", "unit": "search"}]}"#,
/// )?;
/// let prices = prices_in_words(&catalogue.routes().iter().collect::<Vec<_>>());
/// assert_eq!(prices, ["0.5 credits per 1,000 requests", "10 credits per 1,000 searches"]);
/// # Ok::<(), metering_core::catalogue::CatalogueError>(())
/// ```
#[must_use]
pub fn prices_in_words(routes: &[&Route]) -> Vec<String> {
    let prices: Vec<Decimal> = routes
        .iter()
        .flat_map(|route| quoted(route))
        .filter(|price| price.is_positive())
        .map(Credits::to_decimal)
        .collect();
    let lot = common_lot(&prices);
    routes.iter().map(|route| route.words(lot)).collect()
}

/// The prices of a request that its price in words names. What requests use has units of its own.
fn quoted(route: &Route) -> Vec<Credits> {
    match &route.pricing {
        _ if route.is_free() => Vec::new(),
        Pricing::PerRequest(_) | Pricing::PerConnection(_) | Pricing::ByVolume(_) => route.prices(),
        Pricing::PerLookback { .. } => route.prices().into_iter().min().into_iter().collect(),
        Pricing::ByUsage(_) | Pricing::Unknown => Vec::new(),
    }
}

/// How many units all of these prices are quoted for: as many as is best for the lowest, but not so many that the
/// highest becomes hard to read.
fn common_lot(prices: &[Decimal]) -> Option<i64> {
    let (lowest, highest) = (prices.iter().min()?, prices.iter().max()?);
    let best = lot_of(*lowest);
    let is_readable = |lot: i64| *highest * Decimal::from(lot) <= Decimal::from(CREDITS_MAX);
    [MILLION, THOUSAND].into_iter().find(|lot| *lot <= best && is_readable(*lot)).or(Some(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

    #[test]
    fn a_table_quotes_all_requests_alike() {
        let by_volume = r#"[{"up_to": 1000, "credits": "0"}, {"credits": "0.001"}]"#;
        let by_tokens = r#"{"max": "0.5", "report": {"json": {"tokens": "/a"}}, "units": {"tokens": "0.00000025"}}"#;
        // the routes' prices, the same in words
        let table: [(&[&str], &[&str]); 6] = [
            (&[r#""0.01""#, r#""1""#, r#""0""#], &["0.01 credits", "1 credit", "free"]),
            (&[r#""0.0001""#, r#""0.001""#], &["0.1 credits per 1,000 requests", "1 credit per 1,000 requests"]),
            (
                &[r#""0.0001""#, by_volume, by_tokens],
                &[
                    "0.1 credits per 1,000 requests",
                    "1,000 free a month, then 1 credit per 1,000",
                    "0.25 credits per million tokens",
                ],
            ),
            // Half a million credits for a million requests would be hard to read.
            (&[r#""0.0000001""#, r#""0.5""#], &["0.0001 credits per 1,000 requests", "500 credits per 1,000 requests"]),
            (&[r#""0.0001""#, r#""100""#], &["0.0001 credits", "100 credits"]),
            (&[], &[]),
        ];
        for (prices, words) in table {
            let route = |(place, price)| {
                format!(r#"{{"path": "/{place}", "method": "GET", "metered": true, "price": {price}}}"#)
            };
            let routes: Vec<String> = prices.iter().enumerate().map(route).collect();
            let text = format!(r#"{{"market": "M", "version": 1, "endpoints": [{}]}}"#, routes.join(","));
            let catalogue = Catalogue::from_json(&text).unwrap();
            assert_eq!(prices_in_words(&catalogue.routes().iter().collect::<Vec<_>>()), words, "{prices:?}");
        }
    }
}
