//! The outcome of a payment.

use metering_core::access::AccountId;
use metering_core::chains::Address;
use metering_core::chains::TokenUnits;
use metering_core::chains::TxHash;
use metering_core::money::Credits;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::offers::{Network, SignedAuthorization};
use crate::wire::fields::Base64;
use crate::wire::x402::settle_refusal::SettleRefusal;
use crate::wire::x402::v1::network_name_v1;

/// The outcome of a payment: `SettleResponse` of x402.
///
/// A refusal may come with new offers; a pending payment must not, because some clients then pay again.
#[derive(Debug, Clone, PartialEq)]
pub struct SettleResponse {
    network: Option<Network>,
    transaction: Option<TxHash>,
    payer: Option<Address>,
    outcome: Outcome,
    extensions: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Settled { amount: TokenUnits, extra: Value },
    NotSettled { reason: &'static str, message: String },
}

/// The fields in the order of the reference, without nulls.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'s> {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_reason: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payer: Option<String>,
    transaction: String,
    network: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<TokenUnits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'s Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    extensions: &'s Map<String, Value>,
}

impl SettleResponse {
    /// The payment is confirmed and credited. The account and its balance are in `extra`, which all clients keep.
    #[must_use]
    pub fn settled(signed: &SignedAuthorization, tx: TxHash, account: &AccountId, balance: Credits) -> Self {
        Self::used(signed, signed.authorization.value, Some(tx), account, balance)
    }

    /// A payment for usage is settled: `amount` was transferred, in `tx` unless it is nothing.
    #[must_use]
    pub fn used(
        signed: &SignedAuthorization,
        amount: TokenUnits,
        tx: Option<TxHash>,
        account: &AccountId,
        balance: Credits,
    ) -> Self {
        let extra = json!({"account": account.as_str(), "credit_balance": balance.to_string()});
        Self { transaction: tx, ..Self::of(signed, Outcome::Settled { amount, extra }) }
    }

    /// The payment was accepted, but is not confirmed yet. Send this with a status other than 402, and without offers.
    #[must_use]
    pub fn pending(signed: &SignedAuthorization, tx: Option<TxHash>) -> Self {
        let message = "the payment is not confirmed yet; send the same request with the same payment again".to_owned();
        let outcome = Outcome::NotSettled { reason: "settlement_pending", message };
        Self { transaction: tx, ..Self::of(signed, outcome) }
    }

    /// The payment was refused. `signed` is the authorization, if it could be read.
    #[must_use]
    pub fn refused(signed: Option<&SignedAuthorization>, refusal: SettleRefusal, message: impl Into<String>) -> Self {
        let outcome = Outcome::NotSettled { reason: refusal.as_str(), message: message.into() };
        match signed {
            Some(signed) => Self::of(signed, outcome),
            None => Self { network: None, transaction: None, payer: None, outcome, extensions: Map::new() },
        }
    }

    /// The same with these extensions.
    #[must_use]
    pub fn with_extensions(self, extensions: Map<String, Value>) -> Self {
        Self { extensions, ..self }
    }

    fn of(signed: &SignedAuthorization, outcome: Outcome) -> Self {
        let (network, payer) = (Some(Network(signed.chain_id)), Some(signed.authorization.from));
        Self { network, transaction: None, payer, outcome, extensions: Map::new() }
    }

    /// The value of [`PAYMENT_RESPONSE_HEADER`](metering_core::wire::PAYMENT_RESPONSE_HEADER).
    #[must_use]
    pub fn header(&self) -> String {
        Base64::Standard.encode_json(&self.document(self.network_text()))
    }

    /// The value of [`X_PAYMENT_RESPONSE_HEADER`](metering_core::wire::X_PAYMENT_RESPONSE_HEADER), which has the network's name
    /// in version 1.
    #[must_use]
    pub fn header_v1(&self) -> String {
        let name = self.network.and_then(|network| network_name_v1(network.0));
        Base64::Standard.encode_json(&self.document(name.map_or_else(|| self.network_text(), str::to_owned)))
    }

    /// The document as JSON: [`X402_RESPONSE_META`](crate::wire::mcp::X402_RESPONSE_META) of a result of MCP.
    ///
    /// # Panics
    /// Never: every key is text.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self.document(self.network_text())).expect("every key is text")
    }

    fn network_text(&self) -> String {
        self.network.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    fn document(&self, network: String) -> Document<'_> {
        let (error, amount, extra) = match &self.outcome {
            Outcome::Settled { amount, extra } => (None, Some(*amount), Some(extra)),
            Outcome::NotSettled { reason, message } => (Some((*reason, message.as_str())), None, None),
        };
        Document {
            success: error.is_none(),
            error_reason: error.map(|(reason, _)| reason),
            error_message: error.map(|(_, message)| message),
            payer: self.payer.map(|payer| payer.to_checksummed()),
            // Python's client needs the field even if there is no transaction.
            transaction: self.transaction.as_ref().map(ToString::to_string).unwrap_or_default(),
            network,
            amount,
            extra,
            extensions: &self.extensions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::vectors::{decoded, vector};
    use crate::wire::x402::PaymentPayload;

    const TX: TxHash = TxHash::from_bytes([0xab; 32]);

    fn signed() -> SignedAuthorization {
        PaymentPayload::from_value(&vector("x402-v2-fetch")["payload"]).unwrap().signed
    }

    fn settled() -> SettleResponse {
        let account: AccountId = format!("org_{}", "A".repeat(20)).parse().unwrap();
        SettleResponse::settled(&signed(), TX, &account, "49999.5".parse().unwrap())
    }

    #[test]
    fn documents_are_those_of_the_reference_encoder() {
        let vector = vector("server-messages");
        let mut expected = vector["settle_ok"].clone();
        expected["extra"] = json!({"account": "org_AAAAAAAAAAAAAAAAAAAA", "credit_balance": "49999.5"});
        assert_eq!(settled().to_value(), expected);
        assert_eq!(decoded(&settled().header()), expected);

        let pending = SettleResponse::pending(&signed(), Some(TX));
        let mut expected = vector["settle_pending"].clone();
        expected["errorMessage"] = pending.to_value()["errorMessage"].clone();
        assert_eq!(decoded(&pending.header()), expected);
        assert_eq!(decoded(vector["payment_response_header"].as_str().unwrap()), vector["settle_ok"]);
        assert_eq!(decoded(vector["payment_response_pending_header"].as_str().unwrap()), vector["settle_pending"]);
    }

    #[test]
    fn version_1_names_the_network() {
        let vector = vector("server-messages");
        let mut document = decoded(&settled().header_v1());
        for added in ["amount", "extra"] {
            assert!(document.as_object_mut().unwrap().remove(added).is_some());
        }
        assert_eq!(document, vector["v1_settle_ok"]);
        assert_eq!(decoded(vector["x_payment_response_header"].as_str().unwrap()), vector["v1_settle_ok"]);
    }

    #[test]
    fn a_refusal_has_a_code_and_the_fields_that_clients_need() {
        let refused = SettleResponse::refused(None, SettleRefusal::Malformed, "no").to_value();
        let expected = json!({"success": false, "errorReason": "invalid_payload", "errorMessage": "no",
            "transaction": "", "network": ""});
        assert_eq!(refused, expected);
        let refused = SettleResponse::refused(Some(&signed()), SettleRefusal::NonceUsed, "used").to_value();
        assert_eq!(refused["errorReason"], "invalid_exact_evm_nonce_already_used");
        assert_eq!(refused["network"], "eip155:84532");
        let codes: std::collections::BTreeSet<_> = SettleRefusal::ALL.into_iter().map(SettleRefusal::as_str).collect();
        assert_eq!(codes.len(), SettleRefusal::ALL.len(), "each has its own code");
    }
}
