//! Typed data that wallets sign (EIP-712): here, only messages to a token's contract.

use sha3::{Digest, Keccak256};

use crate::chains::address::Address;

/// The fields of a domain that tokens use.
const DOMAIN_TYPE: &[u8] = b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";

/// The domain of messages to a token's contract: it keeps a signature from being valid for another contract or chain.
///
/// ```
/// use metering_core::chains::TokenDomain;
///
/// let usdc = TokenDomain {
///     name: "USDC".to_owned(),
///     version: "2".to_owned(),
///     chain_id: 84_532,
///     contract: "0x036CbD53842c5426634e7929541eC2318f3dCF7e".parse()?,
/// };
/// let separator = "71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818";
/// assert_eq!(hex::encode(usdc.separator()), separator);
/// # Ok::<(), metering_core::chains::AddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenDomain {
    /// The contract's `name` at the time when the contract computed its separator. Not always the token's display name.
    pub name: String,
    /// The contract's `version`.
    pub version: String,
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The contract.
    pub contract: Address,
}

impl TokenDomain {
    /// The domain separator, which such contracts also return from `DOMAIN_SEPARATOR()`.
    #[must_use]
    pub fn separator(&self) -> [u8; 32] {
        keccak(&[
            keccak(&[DOMAIN_TYPE]),
            keccak(&[self.name.as_bytes()]),
            keccak(&[self.version.as_bytes()]),
            number(self.chain_id.into()),
            address(self.contract),
        ])
    }

    /// The digest to sign for a message with this hash (`hashStruct`).
    #[must_use]
    pub fn digest(&self, message: [u8; 32]) -> [u8; 32] {
        keccak::<&[u8]>(&[b"\x19\x01", &self.separator(), &message])
    }
}

/// The Keccak-256 of these parts, concatenated.
pub(crate) fn keccak<P: AsRef<[u8]>>(parts: &[P]) -> [u8; 32] {
    let mut hasher = Keccak256::new();
    for part in parts {
        hasher.update(part.as_ref());
    }
    hasher.finalize().into()
}

/// Encodes a number as a word of 32 bytes.
pub(crate) fn number(number: u128) -> [u8; 32] {
    let mut word = [0; 32];
    word[16..].copy_from_slice(&number.to_be_bytes());
    word
}

/// Encodes an address as a word of 32 bytes.
pub(crate) fn address(address: Address) -> [u8; 32] {
    let mut word = [0; 32];
    word[12..].copy_from_slice(address.as_bytes());
    word
}
