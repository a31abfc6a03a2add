//! Payment orders, and signed payments.

use metering_core::chains::{Address, TokenUnits, TxHash};
use metering_core::shown_fields;
use serde::{Deserialize, Serialize};
use sha3::{Digest, Keccak256};

use crate::encoding::{self, Data};

/// A payment to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaymentOrder {
    /// The chain's id.
    pub chain_id: u64,
    /// The address to pay.
    pub recipient: Address,
    /// The token; `None` for the chain's own coin.
    pub token: Option<Address>,
    /// The amount, in the token's smallest unit.
    pub amount: TokenUnits,
}

/// A signed payment. Store it before you send it, so that the same bytes can be sent again.
///
/// Deserializing checks that the bytes match the hash. Anyone who has it can send this payment, but not change it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredPayment")]
pub struct SignedPayment {
    /// The transaction's hash.
    pub hash: TxHash,
    /// The chain's id.
    pub chain_id: u64,
    /// The wallet that pays.
    pub from: Address,
    /// The transaction's position among the wallet's transactions.
    pub nonce: u64,
    /// The highest possible fee, in the smallest unit of the chain's coin.
    pub fee_max: TokenUnits,
    /// The transaction's bytes.
    #[serde(serialize_with = "as_data")]
    pub raw: Vec<u8>,
}

#[derive(Deserialize)]
struct StoredPayment {
    hash: TxHash,
    chain_id: u64,
    from: Address,
    nonce: u64,
    fee_max: TokenUnits,
    raw: Data,
}

impl SignedPayment {
    /// Whether the bytes match the hash.
    pub(crate) fn matches_hash(&self) -> bool {
        hash_of(&self.raw) == self.hash
    }
}

impl TryFrom<StoredPayment> for SignedPayment {
    type Error = &'static str;

    fn try_from(stored: StoredPayment) -> Result<Self, Self::Error> {
        let StoredPayment { hash, chain_id, from, nonce, fee_max, raw: Data(raw) } = stored;
        let payment = Self { hash, chain_id, from, nonce, fee_max, raw };
        if payment.matches_hash() { Ok(payment) } else { Err("the transaction's bytes do not match its hash") }
    }
}

// Leaves out the bytes, since anyone could make the payment with them.
shown_fields!(SignedPayment: hash, chain_id, from, nonce);

/// The hash of a transaction's bytes.
pub(crate) fn hash_of(raw: &[u8]) -> TxHash {
    TxHash::from_bytes(Keccak256::digest(raw).into())
}

fn as_data<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encoding::data(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payment() -> SignedPayment {
        let raw = vec![2, 0xc0, 7];
        let (from, fee_max) = (Address::from_bytes([1; 20]), TokenUnits::new(5));
        SignedPayment { hash: hash_of(&raw), chain_id: 1, from, nonce: 3, fee_max, raw }
    }

    #[test]
    fn a_payment_is_read_as_it_was_written() {
        let json = serde_json::to_value(payment()).unwrap();
        assert_eq!(json["raw"], "0x02c007");
        assert_eq!(serde_json::from_value::<SignedPayment>(json).unwrap(), payment());
    }

    #[test]
    fn a_payment_whose_bytes_changed_is_not_read() {
        for raw in ["0x02c008", "0x", "02c007", "0x02c0070"] {
            let mut json = serde_json::to_value(payment()).unwrap();
            json["raw"] = raw.into();
            assert!(serde_json::from_value::<SignedPayment>(json).is_err(), "{raw}");
        }
    }

    #[test]
    fn debug_output_reveals_no_key() {
        assert!(!format!("{:?}", payment()).contains("raw"));
    }
}
