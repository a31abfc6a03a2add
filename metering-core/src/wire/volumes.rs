//! Requests of the month to routes with volume tiers, as the account's owner sees them.

use serde::Serialize;

use crate::access::account::AccountId;
use crate::catalogue::Route;
use crate::charging::volume::Volume;
use crate::clock::{Month, Timestamp};
use crate::money::credits::Credits;

/// The response to `GET /credits/usage/volumes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VolumesDocument {
    /// The account's id.
    pub org_id: String,
    /// The calendar month in UTC, `YYYY-MM`.
    pub month: String,
    /// When the next month begins, as RFC 3339. All routes begin with their first tier then.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub resets_at: String,
    /// The routes with volume tiers, in the order of the catalogue.
    pub routes: Vec<RouteVolume>,
}

/// One route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RouteVolume {
    /// The route's template.
    pub route_template: String,
    /// The HTTP method.
    pub http_method: String,
    /// Accepted requests of the month, without refunded ones.
    pub call_count: u32,
    /// The price of the next request.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub next_price: Credits,
    /// How many further requests of the month cost nothing.
    pub free_calls_left: u32,
    /// How many further requests of the month are in the tier of the next one, or take a refunded place at the same
    /// price; null in the last tier.
    pub tier_calls_left: Option<u32>,
    /// The price of a request after that; null in the last tier.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub price_after_tier: Option<Credits>,
}

impl VolumesDocument {
    pub(crate) fn new(account: &AccountId, month: Month, routes: Vec<RouteVolume>) -> Self {
        let resets_at = month.next().start().to_string();
        Self { org_id: account.to_string(), month: month.to_string(), resets_at, routes }
    }
}

impl RouteVolume {
    /// `None` when the route has no volume tiers. `stored` is the last count.
    pub(crate) fn of(route: &Route, stored: Volume, now: Timestamp) -> Option<Self> {
        let tiers = route.volume_tiers()?;
        let volume = stored.at(now);
        let next = volume.clone().next(tiers);
        Some(Self {
            route_template: route.template.to_string(),
            http_method: route.method.to_string(),
            call_count: volume.requests,
            next_price: next.price,
            free_calls_left: volume.free_requests_left(tiers),
            tier_calls_left: next.left,
            price_after_tier: next.price_after,
        })
    }
}
