//! Errors as clients see them: a stable code, a message to act on, and context.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::access::account::RateLimits;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::wire::error_code::ErrorCode;
use crate::wire::payable_members::PayableMembers;
use crate::wire::plans::PlansDocument;

/// The required amount: credits for a request, or confirmations of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Required {
    /// The request's price.
    Credits(Credits),
    /// Blocks from the payment's block to the newest one, counting both.
    Confirmations(u64),
}

/// The body of every error.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// A stable code.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub error: ErrorCode,
    /// A sentence that explains what happened and what to do.
    pub message: String,
    /// URL of the section of the guides that explains the code, if the service has pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
    /// The problem with each field or parameter, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<BTreeMap<String, String>>,
    /// Seconds until a retry may succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_sec: Option<u64>,
    /// The most that the request may cost, as set by its client, with `max_cost_exceeded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub max_cost: Option<Credits>,
    /// Which rate limit is reached: `minute`, `day` or `tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_window: Option<&'static str>,
    /// The account's rate limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limits: Option<RateLimits>,
    /// The limit on tokens per minute that is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u32>,
    /// The credits of the key's budget, with `key_budget_exhausted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub limit: Option<Credits>,
    /// The remaining credits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub limit_remaining: Option<Credits>,
    /// When the budget starts again: `daily`, `weekly` or `monthly`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_reset: Option<&'static str>,
    /// The next time that it starts again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub resets_at: Option<Timestamp>,
    /// Credits left.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub credit_balance: Option<Credits>,
    /// The request's price in credits; with `payment_unconfirmed`, the number of confirmations needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub required: Option<Required>,
    /// The number of confirmations the payment has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmations: Option<u64>,
    /// The expected value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The value found instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// How to use the text to sign, if `message` is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The text that the payer signs to claim another quote of the wallet, with `payment_mismatch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof_message: Option<String>,
    /// The page where the payer signs `message` in a browser, with `payer_proof_required`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_url: Option<String>,
    /// The template of the metered route that the caller probably meant, with `unknown_route`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest_route: Option<String>,
    /// URL of the list of plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plans_url: Option<String>,
    /// URL to register a payment at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topup_url: Option<String>,
    /// The offers for the next request, for clients that read them in the body.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub payable: Option<PayableMembers>,
    /// The plans, with their chains and terms. Only with `insufficient_credits`, whose schema includes them.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub offer: Option<Arc<PlansDocument>>,
}

impl ErrorBody {
    /// A body without context.
    #[must_use]
    pub fn new(error: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            error,
            message: message.into(),
            docs: None,
            fields: None,
            retry_after_sec: None,
            max_cost: None,
            limit_window: None,
            rate_limits: None,
            tokens_per_minute: None,
            limit: None,
            limit_remaining: None,
            limit_reset: None,
            resets_at: None,
            credit_balance: None,
            required: None,
            confirmations: None,
            expected: None,
            found: None,
            hint: None,
            proof_message: None,
            complete_url: None,
            nearest_route: None,
            plans_url: None,
            topup_url: None,
            payable: None,
            offer: None,
        }
    }
}
