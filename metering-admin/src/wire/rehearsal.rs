//! The cost of past usage with another catalogue.

use metering_core::clock::Day;
use metering_core::money::Credits;
use serde::Serialize;

/// The cost of past usage with another catalogue, as `metering admin catalogue rehearse --json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RehearsalDocument {
    /// The first UTC day.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Date))]
    pub first_day: Day,
    /// The last UTC day: today.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Date))]
    pub last_day: Day,
    /// The sums over all routes and accounts.
    pub totals: RehearsedUsage,
    /// How many routes were used.
    pub routes: u64,
    /// The routes whose sum changes most, first.
    pub by_route: Vec<RehearsedRoute>,
    /// How many accounts have usage.
    pub accounts: u64,
    /// The accounts whose sum changes most, first.
    pub by_account: Vec<RehearsedAccount>,
    /// How many accounts would have run out of credits, and did not, or later.
    pub run_outs: u64,
    /// Those with the earliest days, first.
    pub run_out: Vec<RunOut>,
}

/// Usage, and its cost with the new prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RehearsedUsage {
    /// Accepted requests, including refunded ones.
    pub calls: u64,
    /// The charges for them, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_before: Credits,
    /// The charges with the new prices.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_after: Credits,
    /// By how much that is more; negative if it is less.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_difference: Credits,
    /// How many of the requests are counted at an estimate: all of them as delivered or, for a price by usage, rounded
    /// up once for a day and not per request.
    pub estimated_calls: u64,
    /// How many of the requests cannot be priced: `credits_after` has the original charge for them.
    pub unknown_calls: u64,
    /// The charges for those.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_unknown: Credits,
    /// How many of the requests have no route in the new catalogue: they would be refused with 404, and cost nothing.
    pub removed_calls: u64,
}

/// A route's usage, and its cost with the new prices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RehearsedRoute {
    /// The HTTP method.
    pub http_method: String,
    /// The route's template.
    pub route_template: String,
    /// The sums over all accounts.
    #[serde(flatten)]
    pub usage: RehearsedUsage,
}

/// An account's usage, and its cost with the new prices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RehearsedAccount {
    /// The account's id.
    pub org_id: String,
    /// Its name.
    pub agent_name: String,
    /// The sums over all routes.
    #[serde(flatten)]
    pub usage: RehearsedUsage,
}

/// An account that would have run out of credits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunOut {
    /// The account's id.
    pub org_id: String,
    /// Its name.
    pub agent_name: String,
    /// The first day with usage at whose end nothing would have been left.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Date))]
    pub day: Day,
    /// The same with the old prices; null if it did not run out.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = Date))]
    pub day_before: Option<Day>,
    /// The balance at the end of the last day, if nothing had been refused.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub balance_after: Credits,
}
