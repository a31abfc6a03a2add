//! The price table of the first page, in words. It lists only a few routes, to leave room for the plans; the API
//! reference lists all of them.

use metering_core::Catalogue;
use metering_core::catalogue::{Route, prices_in_words};
use serde::Serialize;

/// How many routes are listed.
const MOST: usize = 8;

/// Prices of routes, those that the operator has chosen first.
#[derive(Debug, Serialize)]
pub(super) struct PriceTable {
    rows: Vec<PriceRow>,
    /// How many metered routes there are.
    all: usize,
}

/// The price of a route.
#[derive(Debug, Serialize)]
struct PriceRow {
    method: String,
    path: String,
    /// The route's description; empty when the catalogue has none.
    words: String,
    price: String,
}

impl PriceTable {
    pub(super) fn new(catalogue: &Catalogue) -> Self {
        let metered = || catalogue.routes().iter().filter(|route| route.metered);
        let chosen = metered().filter(|route| route.unit.is_some());
        let others = metered().filter(|route| route.unit.is_none());
        let routes: Vec<&Route> = chosen.chain(others).take(MOST).collect();
        let prices = prices_in_words(&routes);
        Self { rows: routes.into_iter().zip(prices).map(PriceRow::new).collect(), all: metered().count() }
    }
}

impl PriceRow {
    fn new((route, price): (&Route, String)) -> Self {
        Self {
            method: route.method.to_string(),
            path: route.template.to_string(),
            words: route.title().to_owned(),
            price,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_routes_come_first_and_the_table_is_short() {
        let others: String =
            (0..9).map(|n| format!(r#", {{"path": "/{n}", "method": "GET", "metered": true}}"#)).collect();
        let text = format!(
            r#"{{"market": "M", "version": 1, "endpoints": [
                {{"path": "/open", "method": "GET", "metered": false}}{others},
                {{"path": "/search", "method": "GET", "metered": true, "price": "0.01", "unit": "search",
                  "description": "Finds pages."}}]}}"#
        );
        let PriceTable { rows, all } = PriceTable::new(&Catalogue::from_json(&text).unwrap());
        assert_eq!((rows.len(), all), (MOST, 10));
        assert_eq!((rows[0].words.as_str(), rows[0].price.as_str()), ("Finds pages", "10 credits per 1,000 searches"));
        assert_eq!((rows[1].path.as_str(), rows[1].words.as_str()), ("/0", ""));
        assert_eq!(rows[1].price, "0.1389 credits per 1,000 requests", "both for as many");
    }
}
