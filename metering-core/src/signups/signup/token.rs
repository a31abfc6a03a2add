//! The token of a signup session: the secret that redeems it.

use crate::secret::{Secret, SecretHash, token};

/// The secret of a session: `sst_` and 43 random base-62 digits.
pub type SessionToken = Secret<SessionTokenKind>;

/// The SHA3-256 of a session's token, by which stores identify the session.
pub type SessionHash = SecretHash<SessionTokenKind>;

/// The kind of secret that a [`SessionToken`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionTokenKind {}

/// The text is not a session token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a session token; expected sst_ followed by 43 letters and digits")]
pub struct MalformedToken;

token!(SessionTokenKind: SessionToken, SessionHash, "sst_", MalformedToken);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_token_is_refused() {
        for text in ["", "sst_", "sqn_x", &format!("sst_{}", "a".repeat(42)), &format!("sst_{}!", "a".repeat(42))] {
            assert_eq!(SessionToken::parse(text).unwrap_err(), MalformedToken, "{text}");
        }
        assert!(SessionToken::parse(&format!("sst_{}", "a".repeat(43))).is_ok());
    }
}
