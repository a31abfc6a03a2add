//! The secret of a grant: first an authorization code, then one refresh token after the other.
//!
//! All secrets of a grant share a prefix, so a used one still identifies its grant. If one is used again, either it was stolen
//! or the first user stole it, and the grant ends.

use sha3::{Digest, Sha3_256};
use zeroize::Zeroizing;

use crate::random::{Randomness, push_base62};
use crate::raw_bytes::raw_bytes;
use crate::secret::{Secret, SecretHash, SecretKind, has_form};

/// Separates the ids of grants from all other hashes.
const PURPOSE: &[u8] = b"metering: the id of a grant";

/// How many of the digits are the same in all secrets of a grant: 131 bits.
const SHARED_DIGITS: usize = 22;

/// An authorization code or a refresh token: `ogt_` and 65 random base-62 digits.
pub type GrantToken = Secret<GrantTokenKind>;

/// The SHA3-256 of a [`GrantToken`], which a store keeps instead.
pub type GrantTokenHash = SecretHash<GrantTokenKind>;

/// The kind of secret that a [`GrantToken`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GrantTokenKind {}

/// The text is neither an authorization code nor a refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("neither an authorization code nor a refresh token of this service")]
pub struct MalformedGrantToken;

impl SecretKind for GrantTokenKind {
    const NAME: &'static str = "GrantToken";
    const HASH_NAME: &'static str = "GrantTokenHash";
    const PREFIX: &'static str = "ogt_";
    /// The shared digits, and 43 of its own: 256 bits.
    const RANDOM_DIGITS: usize = SHARED_DIGITS + 43;
    type Malformed = MalformedGrantToken;

    fn check(text: &str) -> Result<(), MalformedGrantToken> {
        if has_form::<Self>(text) { Ok(()) } else { Err(MalformedGrantToken) }
    }
}

/// The id of a grant. It is derived from the part that its secrets share, and reveals nothing about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GrantId([u8; 16]);

raw_bytes!(GrantId, 16);

impl GrantToken {
    /// The grant that it is, or was, a secret of.
    #[must_use]
    pub fn grant(&self) -> GrantId {
        let digest: [u8; 32] = Sha3_256::new().chain_update(PURPOSE).chain_update(self.shared()).finalize().into();
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        GrantId(id)
    }

    /// The next secret of the same grant.
    ///
    /// ```
    /// use metering_core::SystemRandomness;
    /// use metering_core::oauth::GrantToken;
    ///
    /// let code = GrantToken::generate(&SystemRandomness);
    /// let next = code.next(&SystemRandomness);
    /// assert_eq!(next.grant(), code.grant());
    /// assert_ne!(next.hash(), code.hash());
    /// ```
    #[must_use]
    pub fn next(&self, randomness: &dyn Randomness) -> Self {
        let length = GrantTokenKind::PREFIX.len() + GrantTokenKind::RANDOM_DIGITS;
        let mut text = Zeroizing::new(String::with_capacity(length));
        text.push_str(self.shared());
        push_base62(randomness, GrantTokenKind::RANDOM_DIGITS - SHARED_DIGITS, &mut text);
        Self::parse(&text).unwrap_or_else(|_| self.clone())
    }

    fn shared(&self) -> &str {
        &self.expose()[..GrantTokenKind::PREFIX.len() + SHARED_DIGITS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandomness;

    #[test]
    fn secrets_of_a_grant_share_its_id_alone() {
        let [code, other] = [(); 2].map(|()| GrantToken::generate(&SystemRandomness));
        let next = code.next(&SystemRandomness);
        assert_eq!((code.grant(), code.expose().len()), (next.grant(), next.expose().len()));
        assert_ne!(code.grant(), other.grant());
        assert_ne!(code.hash(), next.hash());
        assert!(GrantToken::parse(next.expose()).is_ok() && GrantToken::parse(&next.expose()[1..]).is_err());
    }
}
