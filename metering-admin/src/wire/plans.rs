//! Plans and the catalogue, as operators see them.

use metering_core::payments::Plan;
use serde::{Deserialize, Serialize};

/// All plans, on sale or not.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlansDocument {
    /// The plans, in the order of display.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<PlanRow>))]
    pub plans: Vec<Plan>,
}

/// A plan to put on sale or to change.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanRequest {
    /// The plan. It replaces the one with the same id and chain.
    #[cfg_attr(feature = "openapi", schema(value_type = PlanRow))]
    pub plan: Plan,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The fields of a plan, for the OpenAPI document.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "openapi", derive(Serialize, utoipa::ToSchema))]
pub struct PlanRow {
    /// The plan's id, unique on its chain.
    pub id: String,
    /// The chain it is paid on (EIP-155).
    pub chain_id: u64,
    /// The token's symbol.
    pub token_symbol: String,
    /// `erc20` or `native_value`.
    pub payment_kind: String,
    /// The credits that it sells, up to eight decimals.
    pub credits: f64,
    /// The credits that it adds as a bonus.
    pub bonus_credits: Option<f64>,
    /// Its price in the token's display unit, such as `"5.25"`.
    pub token_amount: String,
    /// The token's contract; the zero address for the native coin.
    pub token_contract: Option<String>,
    /// The token's decimals.
    pub token_decimals: u8,
    /// Its display name.
    pub label: String,
    /// A sentence about it.
    pub description: Option<String>,
    /// The name of a special offer.
    pub offer: Option<String>,
    /// The discount in percent, for display only.
    pub discount_percent: Option<u8>,
    /// Whether it is on sale.
    pub active: Option<bool>,
    /// The recipient of payments, if not the chain's.
    pub recipient: Option<String>,
    /// The position in lists, lowest first.
    pub sort_order: Option<i32>,
}

/// The changes that a catalogue would make, if it replaced the one that is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CatalogueCheckDocument {
    /// Whether it can be served.
    pub valid: bool,
    /// Why not; null if it can.
    pub problem: Option<String>,
    /// How many routes it has.
    pub routes: u64,
    /// The changes, by route.
    pub changes: Vec<RouteChange>,
}

/// A route that would be added or removed, or whose price would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RouteChange {
    /// The HTTP method.
    pub http_method: String,
    /// The route's template.
    pub route_template: String,
    /// `added`, `removed` or `price`.
    pub change: String,
    /// The price now, in credits, as text for people; null if the route is added.
    pub price_before: Option<String>,
    /// The same with the new catalogue; null if the route is removed.
    pub price_after: Option<String>,
}

/// A response that consists of one plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlanReply(pub Plan);

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for PlanReply {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        PlanRow::schema()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for PlanReply {
    fn name() -> std::borrow::Cow<'static, str> {
        PlanRow::name()
    }
}
