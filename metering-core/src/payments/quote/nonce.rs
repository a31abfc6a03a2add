//! The nonce of a quote: the secret that claims it.

use sha2::{Digest, Sha256};

use crate::secret::{Secret, SecretHash, token};

/// The length of another service's nonce, in bytes: long enough to be secret, and bounded.
const FOREIGN_BYTES: std::ops::RangeInclusive<usize> = 16..=256;

/// A quote's nonce: `sqn_` and 43 random base-62 digits. Shown once, in the response to the request for the quote.
pub type QuoteNonce = Secret<QuoteNonceKind>;

/// The SHA3-256 of a quote's nonce, by which stores identify the quote.
pub type NonceHash = SecretHash<QuoteNonceKind>;

/// The hash of a nonce as a client sends it: of one that was issued here, or of one in another form, whose quote was
/// imported with the nonce's SHA-256. `None` when the text is not a nonce.
#[must_use]
pub fn nonce_hash(text: &str) -> Option<NonceHash> {
    match QuoteNonce::parse(text) {
        Ok(own) => Some(own.hash()),
        Err(MalformedNonce) if FOREIGN_BYTES.contains(&text.len()) => {
            Some(NonceHash::from_bytes(Sha256::digest(text.as_bytes()).into()))
        }
        Err(MalformedNonce) => None,
    }
}

/// The kind of secret that a [`QuoteNonce`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuoteNonceKind {}

/// The text is not a nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a signup nonce; expected sqn_ followed by 43 letters and digits")]
pub struct MalformedNonce;

token!(QuoteNonceKind: QuoteNonce, NonceHash, "sqn_", MalformedNonce);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_nonce_is_refused() {
        for text in ["", "sqn_", "sk_live_x", &format!("sqn_{}", "a".repeat(42)), &format!("sqn_{}!", "a".repeat(42))] {
            assert_eq!(QuoteNonce::parse(text).unwrap_err(), MalformedNonce, "{text}");
        }
    }

    #[test]
    fn the_form_decides_how_a_nonce_is_hashed() {
        let (own, foreign) = (format!("sqn_{}", "a".repeat(43)), "sqn_0123456789abcdef-_");
        assert_eq!(nonce_hash(&own), Some(QuoteNonce::parse(&own).unwrap().hash()));
        let digest: [u8; 32] = Sha256::digest(foreign.as_bytes()).into();
        assert_eq!(nonce_hash(foreign), Some(NonceHash::from_bytes(digest)));
        assert_eq!((nonce_hash("sqn_short"), nonce_hash(&"x".repeat(257))), (None, None));
    }
}
