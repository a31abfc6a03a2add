//! Recurring credits, as operators see them.

use metering_core::money::Refill;
use serde::{Deserialize, Serialize};

/// How accounts are refilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefillDocument {
    /// The rule; null if accounts are not refilled.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<RefillRow>))]
    pub refill: Option<Refill>,
}

/// A rule to refill accounts by.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefillRequest {
    /// The rule. It replaces the one before.
    #[cfg_attr(feature = "openapi", schema(value_type = RefillRow))]
    pub refill: Refill,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The fields of a rule, for the OpenAPI document.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "openapi", derive(Serialize, utoipa::ToSchema))]
pub struct RefillRow {
    /// The maximum number of credits that an account gets in a period. Above zero, up to eight decimals.
    pub credits: f64,
    /// The period, in UTC: `daily`, `weekly` (from Monday) or `monthly`.
    pub every: String,
    /// The balance, including held credits, that a refill does not exceed. Above zero.
    pub cap: f64,
}
