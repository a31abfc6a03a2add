//! Payments in messages of MCP: names of `_meta` members, and the payment of a call.
//!
//! x402 (`specs/transports-v2/mcp.md`) has its offers in `structuredContent` of a result with `isError`, and the same
//! JSON as text in the first item of `content`. MPP (draft-payment-transport-mcp-00) has its challenges in the data of an
//! error; clients of mppx also read them in `_meta`, which fits into one result with the offers of x402. A tool call becomes
//! an HTTP request; [`payment_header`] and [`PaymentForm`] are the two directions between them.

mod http;

use serde_json::{Map, Value};

use crate::wire::malformed_payment::MalformedPayment;
use crate::wire::mpp::{Challenge, Credential};
use crate::wire::x402::{PaymentPayload, PaymentPayloadV1};

pub use http::{PaymentForm, payment_challenges, payment_header, payment_results};

/// A payment of x402, in `_meta` of a call.
pub const X402_PAYMENT_META: &str = "x402/payment";
/// The outcome of an x402 payment, in `_meta` of a result.
pub const X402_RESPONSE_META: &str = "x402/payment-response";
/// The challenges of MPP, in `_meta` of a result: [`mpp_required`].
pub const MPP_REQUIRED_META: &str = "org.paymentauth/payment-required";
/// A credential of MPP, in `_meta` of a call.
pub const MPP_CREDENTIAL_META: &str = "org.paymentauth/credential";
/// A receipt of MPP, in `_meta` of a result.
pub const MPP_RECEIPT_META: &str = "org.paymentauth/receipt";

/// The payment of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpPayment {
    /// x402 version 2.
    X402(PaymentPayload),
    /// x402 version 1.
    X402V1(PaymentPayloadV1),
    /// MPP.
    Mpp(Credential),
}

impl McpPayment {
    /// Reads the payment in `_meta` of a call; `None` if there is none.
    ///
    /// # Errors
    /// When there are two, or the payment cannot be read.
    pub fn read(meta: &Map<String, Value>) -> Result<Option<Self>, MalformedPayment> {
        let get = |name| meta.get(name).filter(|value| !value.is_null());
        match (get(X402_PAYMENT_META), get(MPP_CREDENTIAL_META)) {
            (None, None) => Ok(None),
            (Some(payment), None) if payment.get("x402Version").and_then(Value::as_u64) == Some(1) => {
                PaymentPayloadV1::from_value(payment).map(Self::X402V1).map(Some)
            }
            (Some(payment), None) => PaymentPayload::from_value(payment).map(Self::X402).map(Some),
            (None, Some(credential)) => Credential::from_value(credential).map(Self::Mpp).map(Some),
            (Some(_), Some(_)) => {
                Err(MalformedPayment::Several { first: X402_PAYMENT_META, second: MPP_CREDENTIAL_META })
            }
        }
    }
}

/// The value of [`MPP_REQUIRED_META`].
#[must_use]
pub fn mpp_required(challenges: &[Challenge]) -> Value {
    let challenges: Vec<_> = challenges.iter().map(Challenge::to_value).collect();
    serde_json::json!({ "challenges": challenges })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::vectors::vector;

    fn meta(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_call_has_at_most_one_payment() {
        let payment = vector("x402-v2-py-httpx")["payload"].clone();
        let credential = vector("mpp-evm-authorization")["credential"].clone();
        let read = |value: Value| McpPayment::read(&meta(&value));
        assert_eq!(read(json!({"progressToken": 1, X402_PAYMENT_META: null})), Ok(None));
        assert!(matches!(read(json!({X402_PAYMENT_META: payment})), Ok(Some(McpPayment::X402(_)))));
        let first_version = vector("x402-v1-py-httpx")["payload"].clone();
        assert!(matches!(read(json!({X402_PAYMENT_META: first_version})), Ok(Some(McpPayment::X402V1(_)))));
        let both = json!({X402_PAYMENT_META: payment, MPP_CREDENTIAL_META: credential});
        assert!(matches!(read(both), Err(MalformedPayment::Several { .. })));
        assert!(matches!(read(json!({MPP_CREDENTIAL_META: credential})), Ok(Some(McpPayment::Mpp(_)))));
        let error = read(json!({X402_PAYMENT_META: "base64"})).unwrap_err().to_string();
        assert!(error.starts_with("_meta[\"x402/payment\"] must be a JSON object"), "{error}");
    }
}
