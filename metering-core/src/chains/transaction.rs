//! Identifies a transaction: its hash and its chain.

use std::fmt;

use crate::hex_word::hex_word;
use crate::text_traits::text_traits;

/// The hash of a transaction. Parsed case-insensitively, displayed in lower case.
///
/// ```
/// use metering_core::chains::TxHash;
///
/// let hash: TxHash = format!("0x{}", "aB".repeat(32)).parse()?;
/// assert_eq!(hash, TxHash::from_bytes([0xab; 32]));
/// assert_eq!(hash.to_string(), format!("0x{}", "ab".repeat(32)));
/// # Ok::<(), metering_core::chains::TxHashError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxHash([u8; 32]);

/// The text is not a transaction hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a transaction hash: 0x followed by 64 hexadecimal digits")]
pub struct TxHashError;

hex_word!(TxHash, TxHashError);

text_traits!(TxHash: Serialize, Deserialize);

/// A transaction on a chain. It can be used for credits once. The same hash on another chain is another transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxRef {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The transaction's hash.
    pub hash: TxHash,
}

impl fmt::Display for TxRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on chain {}", self.hash, self.chain_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_in_any_case_and_shown_in_lower() {
        let hash: TxHash = format!("0x{}", "aB".repeat(32)).parse().unwrap();
        assert_eq!(hash.to_string(), format!("0x{}", "ab".repeat(32)));
        assert_eq!(hash.as_bytes(), &[0xab; 32]);
    }

    #[test]
    fn invalid_hash_is_refused() {
        let (short, long, odd) = ("ab".repeat(31), "ab".repeat(33), "zz".repeat(32));
        for text in ["", "0x", &"ab".repeat(32), &format!("0x{short}"), &format!("0x{long}"), &format!("0x{odd}")] {
            assert_eq!(text.parse::<TxHash>(), Err(TxHashError), "{text}");
        }
    }
}
