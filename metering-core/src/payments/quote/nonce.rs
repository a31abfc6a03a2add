//! The nonce of a quote: the secret that claims it. Stores keep only its hash.

use std::fmt;

use sha3::{Digest, Sha3_256};
use zeroize::Zeroizing;

use crate::random::{Randomness, push_base62};

const PREFIX: &str = "sqn_";
/// 43 base-62 digits are 256 bits.
const DIGITS: usize = 43;

/// A quote's nonce: `sqn_` and 43 random base-62 digits. Shown once, in the response to the request for the quote.
#[derive(Clone)]
pub struct QuoteNonce(Zeroizing<String>);

/// The text is not a nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a signup nonce; expected sqn_ followed by 43 letters and digits")]
pub struct MalformedNonce;

impl QuoteNonce {
    /// A new nonce.
    #[must_use]
    pub fn generate(randomness: &dyn Randomness) -> Self {
        let mut text = Zeroizing::new(String::with_capacity(PREFIX.len() + DIGITS));
        text.push_str(PREFIX);
        push_base62(randomness, DIGITS, &mut text);
        Self(text)
    }

    /// Parses a nonce. Only a store knows whether a quote has it.
    ///
    /// # Errors
    /// When the text is not a nonce.
    pub fn parse(text: &str) -> Result<Self, MalformedNonce> {
        match text.strip_prefix(PREFIX) {
            Some(rest) if rest.len() == DIGITS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                Ok(Self(Zeroizing::new(text.to_owned())))
            }
            _ => Err(MalformedNonce),
        }
    }

    /// The nonce itself, for the response to the client.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Its SHA3-256 (FIPS 202), which the store keeps instead.
    #[must_use]
    pub fn hash(&self) -> NonceHash {
        NonceHash(Sha3_256::digest(self.0.as_bytes()).into())
    }
}

impl fmt::Debug for QuoteNonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuoteNonce(sqn_…)")
    }
}

/// The SHA3-256 of a quote's nonce, by which stores identify the quote.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NonceHash([u8; 32]);

impl NonceHash {
    /// A hash read back from a store.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes of the hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for NonceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NonceHash({}…)", hex::encode(&self.0[..4]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandomness;

    #[test]
    fn generated_nonces_parse_and_differ() {
        let (a, b) = (QuoteNonce::generate(&SystemRandomness), QuoteNonce::generate(&SystemRandomness));
        assert_ne!(a.hash(), b.hash());
        assert_eq!(QuoteNonce::parse(a.expose()).unwrap().hash(), a.hash());
        assert!(!format!("{a:?} {:?}", a.hash()).contains(&a.expose()[4..12]));
    }

    #[test]
    fn invalid_nonce_is_refused() {
        for text in ["", "sqn_", "sk_live_x", &format!("sqn_{}", "a".repeat(42)), &format!("sqn_{}!", "a".repeat(42))] {
            assert_eq!(QuoteNonce::parse(text).unwrap_err(), MalformedNonce, "{text}");
        }
    }
}
