//! Ranks routes by the requests that were made to them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::charging::volume::CountedRoute;

/// The routes in the order of [`Store::route_calls`](crate::Store::route_calls). A route may have several parts, which are
/// added.
#[must_use]
pub fn route_calls(parts: impl IntoIterator<Item = (CountedRoute, u64)>) -> Vec<(CountedRoute, u64)> {
    let mut sums = BTreeMap::<CountedRoute, u64>::new();
    for (route, calls) in parts {
        let sum = sums.entry(route).or_default();
        *sum = sum.saturating_add(calls);
    }
    let mut routes: Vec<_> = sums.into_iter().collect();
    routes.sort_by_key(|(_, calls)| Reverse(*calls));
    routes
}
