//! The internal billing API, for resolvers that charge over HTTP.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::money::credits::Credits;
use crate::wire::factor::Factor;

/// The body of `POST /internal/billing/deduct`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeductRequest {
    /// The path that the client requested, percent-encoded or decoded; a query is cut off. `/` by default.
    #[serde(default, deserialize_with = "super::field::text_or_nothing")]
    pub path: String,
    /// The method that the client used, case-insensitive; `GET` by default.
    #[serde(default, deserialize_with = "super::field::text_or_nothing")]
    pub method: String,
    /// The route to book the usage on; by default the catalogue's route for the path, or else the path itself. A
    /// template that is too long, or would exceed the account's limit on templates, is booked as `(other)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_template: Option<String>,
    /// The weight instead of the catalogue's, a number or text that has one; by default the catalogue's, or else the
    /// operator's `billing.default_weight`. One above the operator's `billing.max_weight` (1000) is cut to it, and one
    /// that is not above 0 or no number counts as 1. Below the stream prefix, the session price applies instead.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit_weight: Option<Factor>,
    /// The multiplier instead of the catalogue's, read like the weight; at most the operator's `billing.max_multiplier`
    /// (100). The price is rounded to the atom, a 7,200,000,000th of a credit.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_multiplier: Option<Factor>,
    /// How many seconds the request looks back, for the catalogue's multiplier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lookback_seconds: Option<u64>,
    /// Which kind of client made the request: `cli`, `mcp`, `direct` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_source: Option<String>,
    /// The address of the client that made the request. A key that is restricted to networks needs it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_ip: Option<IpAddr>,
    /// Identifies the request: a retry within 24 hours gets the first response and is not charged again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl DeductRequest {
    /// The method in capitals.
    #[must_use]
    pub fn method(&self) -> String {
        if self.method.is_empty() { "GET".to_owned() } else { self.method.to_ascii_uppercase() }
    }
}

/// The response to `POST /internal/billing/deduct`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeductResponse {
    /// Always true: the request was charged.
    pub ok: bool,
    /// The balance after the charge.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// The amount that was charged.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub amount_charged: Credits,
    /// The account that was charged.
    pub org_id: String,
}

/// The response to `POST /internal/billing/lookup`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LookupResponse {
    /// The id of the key's account.
    pub org_id: String,
    /// Its owner's email address, if any.
    pub email: Option<String>,
    /// Its balance.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
}
