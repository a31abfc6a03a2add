//! Wallet signatures over texts (EIP-191, version 0x45: `personal_sign`), and recovery of the signer.

use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};
use sha3::{Digest, Keccak256};

use crate::chains::address::Address;
use crate::chains::wrapped_signature::unwrapped;

/// The longest signature to accept, in bytes. A wallet's own has 65; a contract's may have any length (EIP-1271).
const MAX_BYTES: usize = 8_192;

/// A wallet's signature. [`signer`] recovers the wallet's address from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletSignature(Vec<u8>);

/// The text is not a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a signature: 0x followed by 130 hexadecimal digits")]
pub struct WalletSignatureError;

impl WalletSignature {
    /// The length of an ordinary wallet's signature, in bytes.
    pub const KEY_BYTES: usize = 65;

    /// Parses `0x` and hexadecimal digits. Does not check whether the signature is valid. For a wallet that may not be
    /// deployed yet (ERC-6492), the signature inside the wrapper.
    ///
    /// # Errors
    /// When the text is something else, or too long.
    pub fn parse(text: &str) -> Result<Self, WalletSignatureError> {
        let digits = text.strip_prefix("0x").ok_or(WalletSignatureError)?;
        let bytes = hex::decode(digits).map_err(|_| WalletSignatureError)?;
        Self::from_bytes(unwrapped(&bytes).to_vec())
    }

    /// The signature with these bytes.
    ///
    /// # Errors
    /// When there are none, or too many.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, WalletSignatureError> {
        if (1..=MAX_BYTES).contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(WalletSignatureError) }
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The digest that a wallet signs for a text: the Keccak-256 of `0x19`, `Ethereum Signed Message:\n`, the text's length
/// in *bytes* and the text (EIP-191).
///
/// ```
/// use metering_core::chains::signing_digest;
///
/// let digest = hex::encode(signing_digest("Hello World"));
/// assert_eq!(digest, "a1de988600a42c4b4ab089b619297c17d53cffae5d5120d82d8a92d0bb3b78f2");
/// ```
#[must_use]
pub fn signing_digest(text: &str) -> [u8; 32] {
    let mut hasher = Keccak256::new();
    hasher.update(b"\x19Ethereum Signed Message:\n");
    hasher.update(text.len().to_string().as_bytes());
    hasher.update(text.as_bytes());
    hasher.finalize().into()
}

/// The wallet that signed `text`; `None` when the signature is invalid.
///
/// A signature has 65 bytes: r, s, and v (0, 1, 27 or 28). One with an s in the upper half of its range is refused, as
/// on chains (EIP-2): anyone could derive it from the lower one.
///
/// ```
/// use metering_core::chains::{WalletSignature, signer};
///
/// // A test vector from eth-account's documentation.
/// let signature = WalletSignature::parse(concat!(
///     "0xe6ca9bba58c88611fad66a6ce8f996908195593807c4b38bd528d2cff09d4eb3",
///     "3e5bfbbf4d3e39b1a2fd816a7680c19ebebaf3a141b239934ad43cb33fcec8ce1c",
/// ))?;
/// let address = signer("I♥SF", &signature).map(|address| address.to_checksummed());
/// assert_eq!(address.as_deref(), Some("0x5ce9454909639D2D17A3F753ce7d93fa0b9aB12E"));
/// # Ok::<(), metering_core::chains::WalletSignatureError>(())
/// ```
#[must_use]
pub fn signer(text: &str, signature: &WalletSignature) -> Option<Address> {
    signer_of_digest(&signing_digest(text), signature)
}

/// The wallet that signed a digest; `None` when the signature is invalid. The rules are the same as for [`signer`].
#[must_use]
pub fn signer_of_digest(digest: &[u8; 32], signature: &WalletSignature) -> Option<Address> {
    let (rs, v) = signature.0.split_at_checked(64)?;
    let parity = match v {
        [0 | 27] => 0,
        [1 | 28] => 1,
        _ => return None,
    };
    let signature = Signature::from_slice(rs).ok()?;
    if signature.normalize_s() != signature {
        return None;
    }
    let recovery = RecoveryId::from_byte(parity)?;
    let key = VerifyingKey::recover_from_prehash(digest, &signature, recovery).ok()?;
    Some(address_of(&key))
}

/// The address of a public key: the last 20 bytes of the Keccak-256 of its 64 bytes.
fn address_of(key: &VerifyingKey) -> Address {
    let point = key.to_sec1_point(false);
    let hash: [u8; 32] = Keccak256::digest(&point.as_bytes()[1..]).into();
    let mut address = [0; 20];
    address.copy_from_slice(&hash[12..]);
    Address::from_bytes(address)
}

#[cfg(test)]
mod tests {
    use k256::ecdsa::SigningKey;
    use proptest::prelude::*;

    use super::*;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_slice(&[seed; 32]).unwrap()
    }

    /// A wallet's 65-byte signature.
    fn sign(key: &SigningKey, text: &str) -> [u8; 65] {
        let (signature, recovery) = key.sign_prehash_recoverable(&signing_digest(text));
        let mut bytes = [0; 65];
        bytes[..64].copy_from_slice(&signature.to_bytes());
        bytes[64] = 27 + recovery.to_byte();
        bytes
    }

    fn read(bytes: &[u8]) -> WalletSignature {
        WalletSignature::parse(&format!("0x{}", hex::encode(bytes))).unwrap()
    }

    #[test]
    fn the_signer_is_recovered_with_any_form_of_v() {
        let key = key(7);
        let address = address_of(key.verifying_key());
        let signed = sign(&key, "hello");
        for v in [signed[64], signed[64] - 27] {
            let mut bytes = signed;
            bytes[64] = v;
            assert_eq!(signer("hello", &read(&bytes)), Some(address));
        }
        assert_ne!(signer("hello!", &read(&signed)), Some(address));
    }

    #[test]
    fn malformed_signatures_have_no_signer() {
        let signed = sign(&key(7), "hello");
        let with_v = |v| {
            let mut bytes = signed;
            bytes[64] = v;
            bytes.to_vec()
        };
        let table: [(&str, Vec<u8>); 9] = [
            ("one byte", vec![0]),
            ("64 bytes", signed[..64].to_vec()),
            ("66 bytes", [&signed[..], &[0]].concat()),
            ("v of 2", with_v(2)),
            ("v of 26", with_v(26)),
            ("v of 29", with_v(29)),
            ("v with a chain's id (EIP-155)", with_v(37)),
            ("all zero", vec![0; 65]),
            ("r and s beyond the curve's order", vec![0xff; 65]),
        ];
        for (what, bytes) in table {
            assert_eq!(signer("hello", &read(&bytes)), None, "{what}");
        }
    }

    #[test]
    fn high_s_signature_is_refused() {
        let signed = sign(&key(7), "hello");
        let low = Signature::from_slice(&signed[..64]).unwrap();
        let high = Signature::from_scalars(*low.r(), -*low.s()).unwrap();
        let mut bytes = signed;
        bytes[..64].copy_from_slice(&high.to_bytes());
        bytes[64] = if signed[64] == 27 { 28 } else { 27 };
        assert_eq!(signer("hello", &read(&bytes)), None);
    }

    #[test]
    fn invalid_signature_text_is_refused() {
        for text in ["", "0x", "ab", "0Xab", "0xab ", "0xabc", "0xzz", &format!("0x{}", "ab".repeat(MAX_BYTES + 1))] {
            assert_eq!(WalletSignature::parse(text), Err(WalletSignatureError));
        }
        assert_eq!(WalletSignature::parse("0xAB"), WalletSignature::parse("0xab"));
        for (length, accepted) in [(0, false), (1, true), (65, true), (8_192, true), (8_193, false)] {
            let read = WalletSignature::from_bytes(vec![0xab; length]);
            assert_eq!(read.is_ok_and(|read| read.as_bytes() == vec![0xab; length]), accepted, "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 1..100), text in "\\PC{0,20}") {
            let _ = signer(&text, &read(&bytes));
        }

        #[test]
        fn altered_signature_recovers_no_other_signer(seed in 1_u8..=254, text in "\\PC{0,40}", flipped in 0_usize..64) {
            let key = key(seed);
            let mut bytes = sign(&key, &text);
            prop_assert_eq!(signer(&text, &read(&bytes)), Some(address_of(key.verifying_key())));
            bytes[flipped] ^= 1;
            prop_assert_ne!(signer(&text, &read(&bytes)), Some(address_of(key.verifying_key())));
        }
    }
}
