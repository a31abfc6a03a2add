//! Checks a catalogue before it is served: whether it is valid, and what it would change.

use std::collections::BTreeMap;

use metering_core::catalogue::{Catalogue, Pricing, Route};

use crate::wire::{CatalogueCheckDocument, RouteChange};

/// Checks the text of a catalogue file, and compares its prices with those of the catalogue that is served. `conflict`
/// gives the reason why a server cannot serve a valid catalogue, if it cannot.
///
/// ```
/// use metering_core::Catalogue;
/// use metering_admin::check_catalogue;
///
/// let catalogue = |weight| {
///     let route = format!(r#"{{"path": "/price", "method": "GET", "metered": true, "credit_weight": {weight}}}"#);
///     format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#)
/// };
/// let served = Catalogue::from_json(&catalogue(72))?;
/// let check = check_catalogue(&served, &catalogue(144), |_| None);
/// assert_eq!(check.changes[0].price_before.as_deref(), Some("0.01"));
/// assert_eq!(check.changes[0].price_after.as_deref(), Some("0.02"));
/// assert_eq!(check_catalogue(&served, "[", |_| None).valid, false);
/// # Ok::<(), metering_core::catalogue::CatalogueError>(())
/// ```
#[must_use]
pub fn check_catalogue(
    served: &Catalogue,
    text: &str,
    conflict: impl FnOnce(&Catalogue) -> Option<String>,
) -> CatalogueCheckDocument {
    let read = Catalogue::from_json(text).map_err(|error| error.to_string());
    let usable = read.and_then(|new| conflict(&new).map_or(Ok(new), Err));
    match usable {
        Ok(new) => CatalogueCheckDocument {
            valid: true,
            problem: None,
            routes: u64::try_from(new.routes().len()).unwrap_or(u64::MAX),
            changes: compare_catalogues(served, &new),
        },
        Err(problem) => CatalogueCheckDocument { valid: false, problem: Some(problem), routes: 0, changes: Vec::new() },
    }
}

/// The routes that `after` adds, removes or prices in another way than `before`, by template and method.
#[must_use]
pub fn compare_catalogues(before: &Catalogue, after: &Catalogue) -> Vec<RouteChange> {
    changes(&prices(before), &prices(after))
}

/// How each route is priced, by template and method; `None` for routes that are not metered.
type Prices<'a> = BTreeMap<(String, String), Option<&'a Pricing>>;

fn prices(catalogue: &Catalogue) -> Prices<'_> {
    let key = |route: &Route| (route.template.to_string(), route.method.to_string());
    catalogue.routes().iter().map(|route| (key(route), route.metered.then_some(&route.pricing))).collect()
}

/// A price for people.
fn in_words(pricing: Option<&Pricing>) -> String {
    match pricing {
        None => "not metered".to_owned(),
        Some(Pricing::PerRequest(price)) => price.to_string(),
        Some(Pricing::PerConnection(price)) => format!("{price} per connection"),
        Some(Pricing::ByVolume(tiers)) => tiers.to_string(),
        Some(Pricing::ByUsage(price)) => price.to_string(),
        Some(Pricing::Unknown) => "unknown".to_owned(),
        Some(Pricing::PerLookback { weight, tiers, .. }) => {
            let price = |seconds| {
                let price = weight.price(tiers.multiplier(seconds));
                price.map_or_else(|_| "?".to_owned(), |price| price.to_string())
            };
            let up_to = |bound: u64| format!("{} up to {bound} s of look-back", price(bound));
            let beyond = tiers.bounds().last().map_or(0, |bound| bound.saturating_add(1));
            let texts = tiers.bounds().map(up_to).chain([format!("{} beyond", price(beyond))]);
            texts.collect::<Vec<_>>().join(", ")
        }
    }
}

fn changes(before: &Prices<'_>, after: &Prices<'_>) -> Vec<RouteChange> {
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
        let text = |price: Option<&Option<&Pricing>>| price.map(|pricing| in_words(*pricing));
        let (price_before, mut price_after) = (text(before), text(after));
        if change == "price" && price_before == price_after {
            // The words about a price by usage leave out where the cost is reported and what is held.
            price_after = price_after.map(|price| format!("{price}; with another report, estimate or rule"));
        }
        Some(RouteChange {
            http_method: key.1.clone(),
            route_template: key.0.clone(),
            change: change.to_owned(),
            price_before,
            price_after,
        })
    };
    routes.into_iter().filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_of_a_price_by_usage_is_shown() {
        let catalogue = |price: &str| {
            let route = format!(r#"{{"path": "/chat", "method": "POST", "metered": true, "price": {price}}}"#);
            format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#)
        };
        let served = Catalogue::from_json(&catalogue(r#"{"max": "1", "report": {"header": "x-cost"}}"#)).unwrap();
        // the new price, its words
        let table = [
            (r#"{"max": "1", "report": {"header": "x-cost"}}"#, None),
            (r#"{"max": "2", "report": {"header": "x-cost"}}"#, Some("up to 2 credits, as each response reports")),
            (
                r#"{"max": "1", "report": {"header": "x-price"}}"#,
                Some("up to 1 credit, as each response reports; with another report, estimate or rule"),
            ),
            (r#""0.5""#, Some("0.5")),
        ];
        for (price, words) in table {
            let check = check_catalogue(&served, &catalogue(price), |_| None);
            let after = check.changes.first().and_then(|change| change.price_after.as_deref());
            assert_eq!((check.valid, after), (true, words), "{price}");
        }
    }
}
