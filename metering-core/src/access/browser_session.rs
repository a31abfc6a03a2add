//! Sessions of browsers: a key, exchanged for a cookie that scripts cannot read and that can be revoked on its own.
//!
//! A session represents the secret that opened it, and has exactly the rights of that key. It is not live without that
//! secret: a rotation, a revocation, or an expiry of the key ends it, in every process. A member's session represents
//! the account's first key, has only the rights of the member's role, and ends with the member, too.

use std::sync::Arc;
use std::time::Duration;

use crate::access::account::AccountId;
use crate::access::device::DeviceName;
use crate::access::key::{ApiKey, KeyHash};
use crate::access::member::{Member, MemberId};
use crate::access::succession::{ShortRotationKey, derived_key};
use crate::charging::delivery::IdempotencyKey;
use crate::clock::Timestamp;
use crate::random_id::random_id;
use crate::secret::{Secret, SecretHash, token};

/// Separates keys derived for a session's rotation from all other derived keys.
const PURPOSE: &[u8] = b"metering: the key that replaces the key of a session";

/// The token of a session, which is in a browser's cookie: `bst_` and 43 random base-62 digits, 256 bits.
pub type BrowserToken = Secret<BrowserTokenKind>;

/// The SHA3-256 of a session's token, by which stores identify the session.
pub type BrowserTokenHash = SecretHash<BrowserTokenKind>;

/// The kind of secret that a [`BrowserToken`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BrowserTokenKind {}

/// The text is not the token of a browser's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the token of a browser's session; expected bst_ followed by 43 letters and digits")]
pub struct MalformedBrowserToken;

token!(BrowserTokenKind: BrowserToken, BrowserTokenHash, "bst_", MalformedBrowserToken);

impl BrowserToken {
    /// The key that replaces the session's key in the rotation with this idempotency key: always the same. See
    /// [`ApiKey::successor`].
    ///
    /// # Errors
    /// When the idempotency key is shorter than [`ROTATION_KEY_MIN`](crate::access::ROTATION_KEY_MIN).
    pub fn successor(&self, rotation: &IdempotencyKey) -> Result<ApiKey, ShortRotationKey> {
        derived_key(PURPOSE, self.expose(), rotation)
    }
}

/// The public id of a session: `ses_` and 32 lower-case hex digits.
///
/// ```
/// use metering_core::SystemRandomness;
/// use metering_core::access::BrowserSessionId;
///
/// let id = BrowserSessionId::generate(&SystemRandomness);
/// assert_eq!(id.to_string().parse(), Ok(id));
/// assert!("ses_42".parse::<BrowserSessionId>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrowserSessionId([u8; 16]);

/// The text is not the id of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a session is ses_ followed by 32 lower-case hex digits")]
pub struct BrowserSessionIdError;

random_id!(BrowserSessionId, BrowserSessionIdError, "ses_");

/// A session to open, before it is known for which key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBrowserSession {
    /// Its id.
    pub id: BrowserSessionId,
    /// The hash of its token.
    pub token: BrowserTokenHash,
    /// The device that it is on.
    pub device: DeviceName,
    /// When it is opened.
    pub created_at: Timestamp,
}

impl NewBrowserSession {
    /// The session of a key with this secret.
    #[must_use]
    pub fn of_key(self, account: AccountId, secret: KeyHash) -> BrowserSession {
        let Self { id, token, device, created_at } = self;
        let expires_at = BrowserSession::end(created_at, created_at);
        let (used_at, member) = (created_at, None);
        BrowserSession { id, token, account, secret, device, created_at, used_at, expires_at, member }
    }

    /// The session of a member of an account whose first key has this secret.
    #[must_use]
    pub fn of_member(self, member: &Member, first_key: KeyHash) -> BrowserSession {
        BrowserSession { member: Some(member.id), ..self.of_key(member.account.clone(), first_key) }
    }
}

/// A session of a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSession {
    /// Its id.
    pub id: BrowserSessionId,
    /// The hash of its token.
    pub token: BrowserTokenHash,
    /// The account.
    pub account: AccountId,
    /// The hash of the secret that opened it.
    pub secret: KeyHash,
    /// The device that it is on.
    pub device: DeviceName,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last used, to within [`BrowserSession::USE_NOTED_EVERY`].
    pub used_at: Timestamp,
    /// When it ends if it is not used again.
    pub expires_at: Timestamp,
    /// The member whose session it is; `None` for a key's session.
    pub member: Option<MemberId>,
}

impl BrowserSession {
    /// How long a session lasts at most.
    pub const MAX_AGE: Duration = Duration::from_secs(90 * 24 * 60 * 60);
    /// How long it lasts without being used.
    pub const MAX_IDLE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
    /// The maximum number for an account's keys, and for each of its members. One more ends the least recently used of
    /// the key that has the most.
    pub const MAX_PER_ACCOUNT: usize = 20;
    /// How often its use is written: not on every request, so reading an account costs no writes.
    pub const USE_NOTED_EVERY: Duration = Duration::from_secs(10 * 60);

    /// Whether it has not expired. Its key must be live, too.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }

    /// The session after a use at `now`, if it must be written.
    #[must_use]
    pub fn used(&self, now: Timestamp) -> Option<Self> {
        if !self.is_live(now) || now < self.used_at.saturating_add(Self::USE_NOTED_EVERY) {
            return None;
        }
        Some(Self { used_at: now, expires_at: Self::end(self.created_at, now), ..self.clone() })
    }

    fn end(created_at: Timestamp, used_at: Timestamp) -> Timestamp {
        created_at.saturating_add(Self::MAX_AGE).min(used_at.saturating_add(Self::MAX_IDLE))
    }
}

/// The session that a request came with, in place of a key.
#[derive(Debug, Clone)]
pub struct SessionCredentials {
    /// The session's id.
    pub id: BrowserSessionId,
    /// Its token.
    pub token: BrowserToken,
    /// The hash of the secret that opened it.
    pub secret: KeyHash,
    /// The session's member, with the current role in the account; `None` for a key's session.
    pub member: Option<Arc<Member>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandomness;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn opened(at: Timestamp) -> BrowserSession {
        let new = NewBrowserSession {
            id: BrowserSessionId::generate(&SystemRandomness),
            token: BrowserToken::generate(&SystemRandomness).hash(),
            device: DeviceName::of_user_agent(""),
            created_at: at,
        };
        new.of_key(AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness).hash())
    }

    #[test]
    fn a_session_ends_when_it_is_not_used_and_at_last() {
        let start = Timestamp::from_unix_millis(0);
        let after = |days: u32| start.saturating_add(DAY * days);
        let session = opened(start);
        assert!(session.is_live(after(29)) && !session.is_live(after(30)));
        assert_eq!(session.used(after(30)), None, "it has ended");
        let session = session.used(after(29)).unwrap();
        assert_eq!((session.created_at, session.used_at, session.expires_at), (start, after(29), after(59)));
        let session = session.used(after(58)).unwrap().used(after(80)).unwrap();
        assert!(session.is_live(after(89)) && !session.is_live(after(90)));
    }

    #[test]
    fn use_is_written_now_and_then() {
        let start = Timestamp::from_unix_millis(0);
        let session = opened(start);
        let moment = Duration::from_millis(1);
        let due = start.saturating_add(BrowserSession::USE_NOTED_EVERY);
        assert_eq!(session.used(due.saturating_sub(moment)), None);
        assert_eq!(session.used(due).map(|session| session.used_at), Some(due));
    }

    #[test]
    fn a_successor_follows_from_token_and_idempotency_key() {
        let [token, other] = [(); 2].map(|()| BrowserToken::generate(&SystemRandomness));
        let rotation = IdempotencyKey::parse(&"1".repeat(32)).unwrap();
        let hash = |token: &BrowserToken| token.successor(&rotation).unwrap().hash();
        assert_eq!(hash(&token), hash(&token));
        assert_ne!(hash(&token), hash(&other));
        assert!(token.successor(&IdempotencyKey::parse("1").unwrap()).is_err());
    }
}
