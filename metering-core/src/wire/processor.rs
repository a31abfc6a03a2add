//! Payments that a processor took, and their reversals, as a checkout reports them.

use serde::{Deserialize, Serialize};

use crate::money::credits::{Credits, printed};

/// The body of `POST /internal/payments`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProcessorPaymentRequest {
    /// The processor's name, such as `stripe`: 1 to 32 characters of `a-z 0-9 _ -`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "paddle"))]
    pub processor: Option<String>,
    /// The processor's id of the payment: 1 to 255 visible ASCII characters. Each is credited once.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "txn_01hv8wptq8987qeep44cyrewp9"))]
    pub id: Option<String>,
    /// The account that gets the credits.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "org_b9jTe1UNsLWeVpUjI3gF"))]
    pub org_id: Option<String>,
    /// The amount paid, as exact decimal text. Send this or `amount_minor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "10.00"))]
    pub amount: Option<String>,
    /// The amount paid, in the currency's smallest unit (ISO 4217): cents, for EUR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount_minor: Option<u64>,
    /// The currency (ISO 4217).
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "EUR"))]
    pub currency: Option<String>,
    /// The plan that was sold, for the receipt. Without `credits`, it must be a plan of this service, and the account gets
    /// its credits and bonus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// The credits that the account gets; above zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub credits: Option<Credits>,
}

/// The response to `POST /internal/payments`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProcessorPaymentResponse {
    /// The account's id.
    pub org_id: String,
    /// Credits left.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Credits that this payment added, now or, if it is `already_credited`, when it was credited.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub amount_added: Credits,
    /// Credits bought in total.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_purchased: Credits,
    /// The plan that was sold; null without one.
    pub plan_id: Option<String>,
    /// The receipt's number.
    pub receipt_number: String,
    /// Whether the payment had already been credited.
    pub already_credited: bool,
    /// Whether the account is revoked, so that nobody can spend the credits: refund the payment, and report the refund.
    #[serde(default)]
    pub account_revoked: bool,
}

/// The body of `POST /internal/payments/reversals`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProcessorReversalRequest {
    /// The processor's name.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "paddle"))]
    pub processor: Option<String>,
    /// The processor's id of the refund or dispute. Each is applied once.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "adj_01hvgf2s84dr6reszzg29zbvcm"))]
    pub id: Option<String>,
    /// The processor's id of the payment.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "txn_01hv8wptq8987qeep44cyrewp9"))]
    pub payment_id: Option<String>,
    /// The amount taken back, as exact decimal text. Without it and `amount_minor`, the whole payment is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "2.50"))]
    pub amount: Option<String>,
    /// The amount taken back, in the currency's smallest unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount_minor: Option<u64>,
    /// The currency, if there is an amount: the payment's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Why, for the account's ledger: one line of at most 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the reversal has ended, as when a dispute was won or a refund failed. Its credits return, and late
    /// reports about it change nothing.
    #[serde(default)]
    pub restored: bool,
    /// Whether a reversal that has ended takes its credits back again, as when a dispute that was won is lost after all.
    /// Not with `restored`. Send it only if that is the reversal's present state, not with a late report.
    #[serde(default)]
    pub again: bool,
}

/// The response to `POST /internal/payments/reversals`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProcessorReversalResponse {
    /// The account's id.
    pub org_id: String,
    /// Credits left. Below zero if those taken back were spent.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// The amount of the payment that its reversals take back together, as a string.
    pub amount_reversed: String,
    /// The payment's currency.
    pub currency: String,
    /// Whether the reversal has ended.
    pub restored: bool,
    /// Whether it was recorded before, and nothing changed now.
    pub already_recorded: bool,
}
