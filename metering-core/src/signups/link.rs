//! Links that are sent by email: each proves once, and for a limited time, that its owner reads the account's mail.

use std::time::Duration;

use crate::access::account::AccountId;
use crate::access::key::ApiKey;
use crate::access::succession::{ShortRotationKey, derived_key};
use crate::charging::delivery::IdempotencyKey;
use crate::clock::Timestamp;
use crate::named_enum::named_enum;
use crate::secret::{Secret, SecretHash, token};

/// Separates keys issued by recovery links from all other derived keys.
const PURPOSE: &[u8] = b"metering: the key that a recovery link gives";

/// The secret of a link: `eml_` and 43 random base-62 digits.
pub type LinkToken = Secret<LinkTokenKind>;

/// The SHA3-256 of a link's token, by which stores identify the link.
pub type LinkHash = SecretHash<LinkTokenKind>;

/// The kind of secret that a [`LinkToken`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkTokenKind {}

/// The text is not the token of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the token of a link; expected eml_ followed by 43 letters and digits")]
pub struct MalformedLink;

token!(LinkTokenKind: LinkToken, LinkHash, "eml_", MalformedLink);

impl LinkToken {
    /// The key that a recovery issues with this link and this idempotency key: always the same, so a client can repeat
    /// the request if the response is lost. See [`ApiKey::successor`].
    ///
    /// # Errors
    /// When the idempotency key is shorter than [`ROTATION_KEY_MIN`](crate::access::ROTATION_KEY_MIN).
    pub fn recovered_key(&self, recovery: &IdempotencyKey) -> Result<ApiKey, ShortRotationKey> {
        derived_key(PURPOSE, self.expose(), recovery)
    }
}

named_enum! {
    /// The purpose of a link.
    pub enum LinkPurpose {
        /// Verify the account's email address.
        VerifyAddress = "verify_address",
        /// Replace the account's key.
        RecoverKey = "recover_key",
        /// Sign a browser in with the account's first key.
        SignIn = "sign_in",
    }
    parsed as MalformedPurpose
}

impl LinkPurpose {
    /// How long a link works. One for recovery or for signing in is as good as a key, so it works for minutes only.
    #[must_use]
    pub const fn lifetime(self) -> Duration {
        match self {
            Self::VerifyAddress => Duration::from_secs(24 * 60 * 60),
            Self::RecoverKey => Duration::from_secs(10 * 60),
            Self::SignIn => Duration::from_secs(15 * 60),
        }
    }
}

/// The text is not the purpose of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the purpose of a link")]
pub struct MalformedPurpose;

/// A link that was sent by email. An account has at most one for each purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailLink {
    /// The hash of its token.
    pub token: LinkHash,
    /// Its purpose.
    pub purpose: LinkPurpose,
    /// The account that it was sent to.
    pub account: AccountId,
    /// When it stops working.
    pub expires_at: Timestamp,
}

impl EmailLink {
    /// Whether it works for this purpose.
    #[must_use]
    pub fn is_live(&self, purpose: LinkPurpose, now: Timestamp) -> bool {
        self.purpose == purpose && now < self.expires_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandomness;

    #[test]
    fn a_link_works_for_its_purpose_until_it_expires() {
        use LinkPurpose::{RecoverKey, VerifyAddress};
        let expires_at = Timestamp::from_unix_millis(1_000);
        let link = EmailLink {
            token: LinkHash::from_bytes([1; 32]),
            purpose: RecoverKey,
            account: AccountId::generate(&SystemRandomness),
            expires_at,
        };
        // purpose, milliseconds, live
        let table =
            [(RecoverKey, 0, true), (RecoverKey, 999, true), (RecoverKey, 1_000, false), (VerifyAddress, 0, false)];
        for (purpose, now, live) in table {
            assert_eq!(link.is_live(purpose, Timestamp::from_unix_millis(now)), live, "{purpose:?} {now}");
        }
    }

    #[test]
    fn a_recovered_key_follows_from_both_inputs() {
        let [token, other] = [(); 2].map(|()| LinkToken::generate(&SystemRandomness));
        let [one, two] = ["1", "2"].map(|digit| IdempotencyKey::parse(&digit.repeat(32)).unwrap());
        let key = |token: &LinkToken, recovery| token.recovered_key(recovery).unwrap().hash();
        assert_eq!(key(&token, &one), key(&token, &one));
        assert_ne!(key(&token, &one), key(&token, &two));
        assert_ne!(key(&token, &one), key(&other, &one));
        assert!(token.recovered_key(&IdempotencyKey::parse(&"1".repeat(31)).unwrap()).is_err());
        // A text that is both must not yield the same key as a rotation.
        let rotated = derived_key(b"another purpose", token.expose(), &one).unwrap();
        assert_ne!(rotated.hash(), key(&token, &one));
    }

    #[test]
    fn purposes_are_read_as_they_are_written() {
        for purpose in LinkPurpose::ALL {
            assert_eq!(purpose.as_str().parse(), Ok(purpose));
        }
        assert_eq!("".parse::<LinkPurpose>(), Err(MalformedPurpose));
    }
}
