//! Checks a catalogue before it is served: whether it is valid, and what it would change.

use std::collections::BTreeMap;

use crate::catalogue::Catalogue;
use crate::money::credits::Credits;
use crate::wire::admin::{CatalogueCheckDocument, RouteChange};

/// Checks the text of a catalogue file, and compares its prices with those of the catalogue that is served.
///
/// ```
/// use metering_core::Catalogue;
/// use metering_core::administration::check_catalogue;
///
/// let catalogue = |weight| {
///     let route = format!(r#"{{"path": "/price", "method": "GET", "metered": true, "credit_weight": {weight}}}"#);
///     format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#)
/// };
/// let served = Catalogue::from_json(&catalogue(72))?;
/// let check = check_catalogue(&served, &catalogue(144));
/// assert_eq!(check.changes[0].price_before.as_deref(), Some("0.01"));
/// assert_eq!(check.changes[0].price_after.as_deref(), Some("0.02"));
/// assert_eq!(check_catalogue(&served, "[").valid, false);
/// # Ok::<(), metering_core::catalogue::CatalogueError>(())
/// ```
#[must_use]
pub fn check_catalogue(served: &Catalogue, text: &str) -> CatalogueCheckDocument {
    match Catalogue::from_json(text) {
        Ok(new) => CatalogueCheckDocument {
            valid: true,
            problem: None,
            routes: u64::try_from(new.routes().len()).unwrap_or(u64::MAX),
            changes: changes(&prices(served), &prices(&new)),
        },
        Err(error) => {
            CatalogueCheckDocument { valid: false, problem: Some(error.to_string()), routes: 0, changes: Vec::new() }
        }
    }
}

type Prices = BTreeMap<(String, String), Credits>;

/// The price of a request without a lookback, by template and method. A route that is not metered costs nothing.
fn prices(catalogue: &Catalogue) -> Prices {
    let price = |route: &crate::catalogue::Route| if route.metered { route.price(0) } else { Credits::ZERO };
    let routes = catalogue.routes().iter();
    routes.map(|route| ((route.template.to_string(), route.method.to_string()), price(route))).collect()
}

fn changes(before: &Prices, after: &Prices) -> Vec<RouteChange> {
    let mut routes: Vec<_> = before.keys().chain(after.keys()).collect();
    routes.sort_unstable();
    routes.dedup();
    let change = |key: &(String, String)| {
        let (before, after) = (before.get(key), after.get(key));
        let change = match (before, after) {
            (None, _) => "added",
            (_, None) => "removed",
            (Some(before), Some(after)) if before != after => "price",
            _ => return None,
        };
        let text = |price: Option<&Credits>| price.map(ToString::to_string);
        Some(RouteChange {
            http_method: key.1.clone(),
            route_template: key.0.clone(),
            change: change.to_owned(),
            price_before: text(before),
            price_after: text(after),
        })
    };
    routes.into_iter().filter_map(change).collect()
}
