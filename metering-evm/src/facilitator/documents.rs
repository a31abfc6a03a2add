//! The documents of x402, version 2, that a service and its facilitator exchange.

use metering_pay::offers::{Listing, Offer, SignedAuthorization};
use metering_pay::wire::x402::{BAZAAR_EXTENSION, Requirements, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const VERSION: u32 = 2;

/// The body of a request, the same for both.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PaymentRequest {
    x402_version: u32,
    payment_payload: PaymentPayload,
    payment_requirements: Requirements,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PaymentPayload {
    x402_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<Resource>,
    payload: Payload,
    accepted: Requirements,
    #[serde(skip_serializing_if = "Map::is_empty")]
    extensions: Map<String, Value>,
}

#[derive(Serialize)]
struct Payload {
    authorization: Terms,
    signature: String,
}

/// An authorization. Numbers are decimal text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Terms {
    from: String,
    to: String,
    value: String,
    valid_after: String,
    valid_before: String,
    nonce: String,
}

impl PaymentRequest {
    pub(super) fn new(signed: &SignedAuthorization, offer: &Offer, listing: Option<&Listing>) -> Self {
        let requirements = Requirements::from(offer);
        let terms = signed.authorization;
        let authorization = Terms {
            from: terms.from.to_checksummed(),
            to: terms.to.to_checksummed(),
            value: terms.value.to_string(),
            valid_after: terms.valid_after.to_string(),
            valid_before: terms.valid_before.to_string(),
            nonce: terms.nonce.to_string(),
        };
        let signature = format!("0x{}", hex::encode(signed.signature.as_bytes()));
        let payload = Payload { authorization, signature };
        let accepted = requirements.clone();
        let resource = listing.map(|listing| listing.resource.clone());
        let extensions = listing.map(|listing| (BAZAAR_EXTENSION.to_owned(), listing.bazaar.clone()));
        let extensions = extensions.into_iter().collect();
        Self {
            x402_version: VERSION,
            payment_payload: PaymentPayload { x402_version: VERSION, resource, payload, accepted, extensions },
            payment_requirements: requirements,
        }
    }
}

/// The response to `/verify`, with any status.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Verified {
    pub(super) is_valid: bool,
    invalid_reason: Option<String>,
    invalid_message: Option<String>,
}

/// The response to `/settle`, with any status.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Settled {
    pub(super) success: bool,
    /// A hash, or nothing if no transaction was sent.
    pub(super) transaction: Option<String>,
    error_reason: Option<String>,
    error_message: Option<String>,
}

impl Verified {
    /// Why it is not valid.
    pub(super) fn reason(&self) -> String {
        joined(self.invalid_reason.as_deref(), self.invalid_message.as_deref())
    }
}

impl Settled {
    /// Why it was not executed.
    pub(super) fn reason(&self) -> String {
        joined(self.error_reason.as_deref(), self.error_message.as_deref())
    }

    /// Whether the payment may still have been executed, or may be later, although this response reports a failure.
    pub(super) fn may_be_executed(&self) -> bool {
        // Pending; requested twice; used, perhaps by an earlier request; and unknown outcomes.
        const REASONS: [&str; 5] = [
            "settlement_pending",
            "duplicate_settlement",
            "invalid_exact_evm_nonce_already_used",
            "invalid_transaction_state",
            "unexpected_settle_error",
        ];
        let was_sent = self.transaction.as_ref().is_some_and(|hash| !hash.is_empty());
        was_sent || self.error_reason.as_deref().is_none_or(|reason| REASONS.contains(&reason))
    }
}

fn joined(code: Option<&str>, message: Option<&str>) -> String {
    match (code, message.filter(|message| !message.is_empty())) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => "it gives no reason".to_owned(),
    }
}
