//! The nonce of a quote: the secret that claims it.

use crate::secret::{Secret, SecretHash, SecretKind, has_form};

/// A quote's nonce: `sqn_` and 43 random base-62 digits. Shown once, in the response to the request for the quote.
pub type QuoteNonce = Secret<QuoteNonceKind>;

/// The SHA3-256 of a quote's nonce, by which stores identify the quote.
pub type NonceHash = SecretHash<QuoteNonceKind>;

/// The kind of secret that a [`QuoteNonce`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuoteNonceKind {}

/// The text is not a nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a signup nonce; expected sqn_ followed by 43 letters and digits")]
pub struct MalformedNonce;

impl SecretKind for QuoteNonceKind {
    const NAME: &'static str = "QuoteNonce";
    const HASH_NAME: &'static str = "NonceHash";
    const PREFIX: &'static str = "sqn_";
    /// 43 base-62 digits are 256 bits.
    const RANDOM_DIGITS: usize = 43;
    type Malformed = MalformedNonce;

    fn check(text: &str) -> Result<(), MalformedNonce> {
        if has_form::<Self>(text) { Ok(()) } else { Err(MalformedNonce) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_nonce_is_refused() {
        for text in ["", "sqn_", "sk_live_x", &format!("sqn_{}", "a".repeat(42)), &format!("sqn_{}!", "a".repeat(42))] {
            assert_eq!(QuoteNonce::parse(text).unwrap_err(), MalformedNonce, "{text}");
        }
    }
}
