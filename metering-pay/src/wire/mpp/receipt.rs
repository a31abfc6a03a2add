//! The amount paid.

use metering_core::chains::TxHash;
use metering_core::clock::Timestamp;
use serde_json::{Value, json};

use crate::wire::fields::Base64;
use crate::wire::mpp::METHOD;
use crate::wire::mpp::challenge::whole_seconds;

/// The receipt of a payment, for successful responses only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The transaction that executed the authorization.
    pub transaction: TxHash,
    /// Its chain.
    pub chain_id: u64,
    /// The challenge that was paid.
    pub challenge_id: String,
    /// When the payment was received.
    pub at: Timestamp,
}

impl Receipt {
    /// The value of [`PAYMENT_RECEIPT_HEADER`](metering_core::wire::PAYMENT_RECEIPT_HEADER): base64url without padding.
    #[must_use]
    pub fn header(&self) -> String {
        Base64::Url.encode_json(&self.to_value())
    }

    /// The receipt as JSON: [`MPP_RECEIPT_META`](crate::wire::mcp::MPP_RECEIPT_META) of a result of MCP.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({
            "method": METHOD,
            "reference": self.transaction.to_string(),
            "status": "success",
            "timestamp": whole_seconds(self.at),
            "challengeId": self.challenge_id,
            "chainId": self.chain_id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::vectors::{NOW, vector};

    #[test]
    fn the_receipt_is_that_of_the_reference_encoder() {
        let vector = vector("server-messages");
        let receipt = Receipt {
            transaction: TxHash::from_bytes([0xab; 32]),
            chain_id: 84_532,
            challenge_id: vector["mpp_receipt"]["challengeId"].as_str().unwrap().to_owned(),
            at: Timestamp::from_unix_millis(NOW * 1_000 + 2_999),
        };
        assert_eq!(receipt.to_value(), vector["mpp_receipt"]);
        let decoded = |header: &str| Base64::Url.decode_json("Payment-Receipt", header).unwrap();
        assert_eq!(decoded(&receipt.header()), vector["mpp_receipt"]);
        assert_eq!(decoded(vector["payment_receipt_header"].as_str().unwrap()), vector["mpp_receipt"]);
        assert!(!receipt.header().contains('='));
    }
}
