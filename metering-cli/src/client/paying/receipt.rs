//! The outcome of a payment, from the service's response to the request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, StatusCode};
use metering_core::chains::TxHash;
use metering_core::wire::{PAYMENT_REQUIRED_HEADER, PAYMENT_RESPONSE_HEADER, X_PAYMENT_RESPONSE_HEADER};
use serde::Deserialize;
use serde_json::Value;

/// The longest header to read, in bytes.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// How much of a service's reason is kept, in characters.
const REASON_CHARS_MAX: usize = 200;

/// The outcome of a payment, as its service reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The call was served.
    Served { transaction: Option<String> },
    /// It was executed, and the call was not served.
    Settled { transaction: Option<String> },
    /// It was executed before, and its credits are on an account: the call needs no payment.
    Credited,
    /// It was refused.
    Refused { why: String },
    /// Not known yet.
    Unknown,
}

/// The document of the header: `SettleResponse` of x402.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Receipt {
    success: bool,
    transaction: Option<String>,
    error_reason: Option<String>,
    error_message: Option<String>,
}

/// The parts of an error's body that are read, whatever the shape of the route's errors.
#[derive(Deserialize)]
struct ErrorBody {
    /// The code, in this service's own shape; an object in others.
    error: Value,
    /// The code, in other shapes.
    error_code: Option<String>,
    message: Option<String>,
}

impl ErrorBody {
    fn code(&self) -> &str {
        self.error_code.as_deref().or(self.error.as_str()).unwrap_or_default()
    }
}

impl Verdict {
    /// Reads a response. `body` is that of an error, and empty otherwise.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let receipt = Receipt::read(headers);
        let is_settled = receipt.as_ref().is_some_and(|receipt| receipt.success);
        let transaction = receipt.as_ref().and_then(Receipt::transaction);
        let error: Option<ErrorBody> = serde_json::from_slice(body).ok();
        let code = error.as_ref().map_or("", ErrorBody::code);
        if status.is_success() {
            return Self::Served { transaction };
        }
        if code == "payment_credited" {
            return Self::Credited;
        }
        if is_settled {
            let is_final = status.is_client_error() && status != StatusCode::PAYMENT_REQUIRED && !is_passing(status);
            return if is_final { Self::Served { transaction } } else { Self::Settled { transaction } };
        }
        // The reference implementation sends it along with new offers, if it refuses a payment before sending it to the
        // chain.
        let offered = Receipt::error_of_offers(headers);
        let reason = receipt.as_ref().and_then(|receipt| receipt.error_reason.as_deref());
        let reason = reason.or(offered.as_deref().filter(|_| code.is_empty())).unwrap_or(code);
        if is_nonce_used(reason) {
            return Self::Settled { transaction };
        }
        // Our own code for a payment that was not taken.
        let is_untaken = code == "settlement_unavailable";
        if !is_untaken && status.is_server_error() || is_passing(status) || reason == "settlement_pending" {
            return Self::Unknown;
        }
        let message = receipt.as_ref().and_then(|receipt| receipt.error_message.as_deref());
        let message = message.or_else(|| error.as_ref().and_then(|error| error.message.as_deref()));
        let parts: Vec<_> = [Some(reason), message].into_iter().flatten().filter(|part| !part.is_empty()).collect();
        let why = if parts.is_empty() { format!("HTTP {}", status.as_u16()) } else { parts.join(": ") };
        Self::Refused { why: short(&why) }
    }
}

/// Statuses after which the same request may get another response soon.
const fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429)
}

/// Both spellings of the reference implementation, and that of older facilitators.
fn is_nonce_used(reason: &str) -> bool {
    reason.contains("nonce_already_used") || reason.contains("authorization_used") || reason == "nonce_used"
}

/// A reason in plain ASCII, so that a truncated line of the journal is never invalid text.
fn short(text: &str) -> String {
    let shown = |c: char| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' };
    text.chars().take(REASON_CHARS_MAX).map(shown).collect()
}

impl Receipt {
    fn read(headers: &HeaderMap) -> Option<Self> {
        let header =
            [PAYMENT_RESPONSE_HEADER, X_PAYMENT_RESPONSE_HEADER].into_iter().find_map(|name| headers.get(name))?;
        if header.len() > HEADER_BYTES_MAX {
            return None;
        }
        serde_json::from_slice(&STANDARD.decode(header.as_bytes()).ok()?).ok()
    }

    /// The error in a document of offers.
    fn error_of_offers(headers: &HeaderMap) -> Option<String> {
        #[derive(Deserialize)]
        struct Offers {
            error: String,
        }
        let header = headers.get(PAYMENT_REQUIRED_HEADER).filter(|header| header.len() <= HEADER_BYTES_MAX)?;
        let offers: Offers = serde_json::from_slice(&STANDARD.decode(header.as_bytes()).ok()?).ok()?;
        Some(offers.error)
    }

    /// The transaction, if it is one of an EVM chain.
    fn transaction(&self) -> Option<String> {
        self.transaction.as_deref()?.parse::<TxHash>().ok().map(|hash| hash.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TX: &str = "0x4fb186eac8671be3d580252b09eb620e95140339cb5051905932dad888d5dd54";

    fn verdict(status: u16, receipt: Option<Value>, body: &str) -> Verdict {
        let mut headers = HeaderMap::new();
        if let Some(receipt) = receipt {
            headers.insert("payment-response", STANDARD.encode(receipt.to_string()).parse().unwrap());
        }
        Verdict::of(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes())
    }

    #[test]
    fn responses_say_what_became_of_a_payment() {
        let settled = || Some(json!({"success": true, "transaction": TX, "network": "eip155:8453"}));
        let failed = |reason: &str| Some(json!({"success": false, "errorReason": reason, "transaction": ""}));
        let (tx, none) = (Some(TX.to_owned()), None);
        let refused = |why: &str| Verdict::Refused { why: why.to_owned() };
        let table = [
            (200, settled(), "", Verdict::Served { transaction: tx.clone() }),
            (200, None, "", Verdict::Served { transaction: none.clone() }),
            (404, settled(), "{}", Verdict::Served { transaction: tx.clone() }),
            (500, settled(), "", Verdict::Settled { transaction: tx.clone() }),
            (402, settled(), "", Verdict::Settled { transaction: tx.clone() }),
            (429, settled(), "", Verdict::Settled { transaction: tx }),
            (402, failed("invalid_exact_evm_nonce_already_used"), "", Verdict::Settled { transaction: none }),
            (409, failed("invalid_exact_evm_nonce_already_used"), r#"{"error":"payment_credited"}"#, Verdict::Credited),
            (
                409,
                failed("invalid_exact_evm_nonce_already_used"),
                r#"{"error":{"code":"payment_credited"},"error_code":"payment_credited"}"#,
                Verdict::Credited,
            ),
            (503, failed("settlement_pending"), "", Verdict::Unknown),
            (402, failed("settlement_pending"), "", Verdict::Unknown),
            (500, None, "", Verdict::Unknown),
            (429, None, "", Verdict::Unknown),
            (503, failed("simulation"), r#"{"error":"settlement_unavailable"}"#, refused("simulation")),
            (402, failed("insufficient_funds"), "{}", refused("insufficient_funds")),
            (402, None, r#"{"error":"payment_refused","message":"No."}"#, refused("payment_refused: No.")),
            (402, None, "<html>", refused("HTTP 402")),
            (404, None, "", refused("HTTP 404")),
            (302, None, "", refused("HTTP 302")),
        ];
        for (status, receipt, body, expected) in table {
            assert_eq!(verdict(status, receipt.clone(), body), expected, "{status} {receipt:?} {body}");
        }
    }

    #[test]
    fn reason_may_be_beside_new_offers() {
        let verdict = |error: &str| {
            let offers = json!({"x402Version": 2, "error": error, "accepts": []}).to_string();
            let mut headers = HeaderMap::new();
            headers.insert("payment-required", STANDARD.encode(offers).parse().unwrap());
            Verdict::of(StatusCode::PAYMENT_REQUIRED, &headers, b"{}")
        };
        assert_eq!(verdict("insufficient_funds"), Verdict::Refused { why: "insufficient_funds".to_owned() });
        let settled = Verdict::Settled { transaction: None };
        assert_eq!(verdict("invalid_exact_evm_nonce_already_used"), settled);
    }

    #[test]
    fn what_a_service_writes_cannot_harm() {
        let receipt = json!({"success": true, "transaction": "\u{1b}[2J", "errorReason": 7});
        assert_eq!(verdict(200, Some(receipt), ""), Verdict::Served { transaction: None });
        let receipt = json!({"success": false, "errorReason": format!("\u{1b}é{}", "x".repeat(500))});
        let Verdict::Refused { why } = verdict(402, Some(receipt), "") else { panic!() };
        assert!(why.starts_with("??xxx") && why.len() == REASON_CHARS_MAX, "{why}");
    }
}
