//! The numbers of receipts. A receipt is not stored: it is derived from the ledger entry and the payment's record, so
//! its number depends only on data that never changes.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::chains::transaction::{TxHash, TxRef};

/// How many bytes of the transaction's hash are in a number.
const HASH_BYTES: usize = 8;
const PREFIX: &str = "R-";

/// The number of a receipt: `R-`, the chain's id, and the first 16 digits of the transaction's hash.
///
/// It never changes, also when the store is moved, and two payments never share it by chance: a transaction counts
/// once.
///
/// ```
/// use metering_core::chains::TxRef;
/// use metering_core::payments::ReceiptNumber;
///
/// let hash = "0x9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".parse()?;
/// let number = ReceiptNumber::of(&TxRef { chain_id: 8453, hash });
/// assert_eq!(number.to_string(), "R-8453-9F86D081884C7D65");
/// assert_eq!("r-8453-9f86d081884c7d65".parse(), Ok(number));
/// # Ok::<(), metering_core::chains::TxHashError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReceiptNumber {
    chain_id: u64,
    hash: [u8; HASH_BYTES],
}

/// The text is not the number of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a receipt number such as R-8453-9F86D081884C7D65")]
pub struct ReceiptNumberError;

impl ReceiptNumber {
    /// The number of the receipt for a payment.
    #[must_use]
    pub fn of(tx: &TxRef) -> Self {
        let (hash, _) = tx.hash.as_bytes().split_first_chunk().expect("a hash has 32 bytes");
        Self { chain_id: tx.chain_id, hash: *hash }
    }

    /// The chain's id (EIP-155).
    #[must_use]
    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// The hashes of transactions whose receipts have this number, by their bytes.
    #[must_use]
    pub fn hashes(&self) -> RangeInclusive<TxHash> {
        let with_rest = |rest: u8| {
            let mut bytes = [rest; 32];
            bytes[..HASH_BYTES].copy_from_slice(&self.hash);
            TxHash::from_bytes(bytes)
        };
        with_rest(0)..=with_rest(u8::MAX)
    }
}

impl fmt::Display for ReceiptNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}-{}", self.chain_id, hex::encode_upper(self.hash))
    }
}

impl FromStr for ReceiptNumber {
    type Err = ReceiptNumberError;

    fn from_str(text: &str) -> Result<Self, ReceiptNumberError> {
        let text = text.to_ascii_uppercase();
        let (chain_id, digits) =
            text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')).ok_or(ReceiptNumberError)?;
        let chain_id = chain_id.parse().map_err(|_| ReceiptNumberError)?;
        let mut hash = [0; HASH_BYTES];
        hex::decode_to_slice(digits, &mut hash).map_err(|_| ReceiptNumberError)?;
        let number = Self { chain_id, hash };
        // One spelling per number: no plus sign, no leading zeros.
        if number.to_string() == text { Ok(number) } else { Err(ReceiptNumberError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_hashes_that_begin_with_it() {
        let hash = TxHash::from_bytes([0xab; 32]);
        let number = ReceiptNumber::of(&TxRef { chain_id: 1, hash });
        assert!(number.hashes().contains(&hash));
        assert!(!number.hashes().contains(&TxHash::from_bytes([0xac; 32])));
        assert!(!number.hashes().contains(&TxHash::from_bytes([0xaa; 32])));
    }

    #[test]
    fn numbers_have_one_spelling() {
        let tx = TxRef { chain_id: 1, hash: TxHash::from_bytes([0xab; 32]) };
        assert_eq!(ReceiptNumber::of(&tx).to_string(), "R-1-ABABABABABABABAB");
        let table = [
            ("R-1-ABABABABABABABAB", true),
            ("r-1-abababababababab", true),
            ("R-01-ABABABABABABABAB", false),
            ("R-+1-ABABABABABABABAB", false),
            ("R-1-ABABABABABABABA", false),
            ("R-1-ABABABABABABABABAB", false),
            ("R-1-ABABABABABABABAG", false),
            ("R--ABABABABABABABAB", false),
            ("R-18446744073709551616-ABABABABABABABAB", false),
            ("1-ABABABABABABABAB", false),
            ("", false),
        ];
        for (text, valid) in table {
            assert_eq!(text.parse() == Ok(ReceiptNumber::of(&tx)), valid, "{text}");
        }
    }
}
