//! An issued key: its record, its parent keys, and its usage.
//!
//! A key is not its secret. Callers send the secret, and a rotation replaces it; the key keeps its id, its terms and
//! its usage.

use std::net::IpAddr;
use std::time::Duration;

use crate::access::account::{Account, AccountId};
use crate::access::budget::Spent;
use crate::access::key::KeyHash;
use crate::access::key_hint::KeyHint;
use crate::access::key_id::{KeyId, KeyNumber};
use crate::access::key_terms::KeyTerms;
use crate::access::key_use::{KeyRefusal, KeyUse};
use crate::access::scope::Scope;
use crate::charging::rate::RateWindows;
use crate::clock::{Day, Timestamp};
use crate::money::credits::Credits;

/// A key of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its public id.
    pub id: KeyId,
    /// Its number within the account.
    pub number: KeyNumber,
    /// The account.
    pub account: AccountId,
    /// The key that made it; `None` for the account's first one.
    pub parent: Option<KeyNumber>,
    /// Its scopes.
    pub terms: KeyTerms,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was reported as leaked, unless it was rotated since.
    pub leaked_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// The visible part of its newest secret; `None` if the secret is older than hints, or was imported without one.
    pub hint: Option<KeyHint>,
}

impl Key {
    /// The most keys in a chain, from an account's first key down to the last.
    pub const MAX_DEPTH: usize = 8;
    /// How many revoked and expired keys an account keeps, the newest ones. Older ones are deleted.
    pub const MAX_ENDED: usize = 1_000;
    /// How long after its end such an older key is deleted at the earliest: longer than any request takes, so a refund
    /// finds the key that was charged.
    pub const ENDED_RETENTION: Duration = Duration::from_secs(60 * 60);
    /// How many revoked and expired secrets a key keeps, the newest ones. A rotation deletes older ones that ended more
    /// than [`Key::ENDED_RETENTION`] ago.
    pub const MAX_ENDED_SECRETS: usize = 100;

    /// The key that an account is created with.
    #[must_use]
    pub fn first(account: AccountId, secret: &KeyHash, created_at: Timestamp) -> Self {
        let (id, number, terms) = (KeyId::of_first(secret), KeyNumber::FIRST, KeyTerms::first());
        let (parent, leaked_at, revoked_at) = (None, None, None);
        Self { id, number, account, parent, terms, created_at, leaked_at, revoked_at, hint: secret.hint() }
    }

    /// The key with a new secret. If it leaked, it no longer counts as leaked.
    pub(crate) fn with_secret(self, secret: &KeyHash) -> Self {
        Self { hint: secret.hint(), leaked_at: None, ..self }
    }

    /// Whether it is neither disabled, leaked nor revoked. Ignores its expiry, which depends on the time.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        !self.terms.disabled && self.leaked_at.is_none() && self.revoked_at.is_none()
    }
}

/// The holder of a secret: an account that is not revoked, and the chain of keys from the one with this secret up to
/// the account's first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHolder {
    /// The account.
    pub account: Account,
    /// The keys, at least one. Each one's parent follows it.
    pub chain: Vec<Key>,
    /// When this secret stops working, if it was replaced with a grace period or is an access token of OAuth.
    pub secret_expires_at: Option<Timestamp>,
    /// Usage that counts against the account's rate limits.
    pub windows: RateWindows,
    /// Usage that counts against the rate limits of each key of the chain, in the same order.
    pub key_windows: Vec<RateWindows>,
}

impl KeyHolder {
    /// The key with this secret.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        self.chain.first()
    }

    /// Whether the secret still works, and all keys of the chain are live and not expired.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        let is_usable = |key: &Key| key.is_live() && key.terms.expires_at.is_none_or(|at| now < at);
        self.secret_works(now) && self.chain.iter().all(is_usable)
    }

    fn secret_works(&self, now: Timestamp) -> bool {
        self.secret_expires_at.is_none_or(|at| now < at)
    }

    /// Checks that the key may be used for this, from this address, at `now`. A secret in its grace period is for
    /// clients that still have it, and an access token for others than the owner: they can only call and read.
    ///
    /// # Errors
    /// As [`KeyUse::check`], for the first key of the chain that refuses it.
    pub fn check(&self, scope: Option<Scope>, address: Option<IpAddr>, now: Timestamp) -> Result<(), KeyRefusal> {
        if !self.secret_works(now) || !self.chain.iter().all(Key::is_live) {
            return Err(KeyRefusal::NotLive);
        }
        if let (Some(scope @ (Scope::Manage | Scope::TopUp)), Some(_)) = (scope, self.secret_expires_at) {
            return Err(KeyRefusal::Scope { scope });
        }
        self.check_use(&KeyUse { scope, route: None, address, at: now })
    }

    /// Checks that the key and its parent keys allow this use.
    ///
    /// # Errors
    /// As [`KeyUse::check`], for the first key of the chain that refuses it.
    pub(crate) fn check_use(&self, used_for: &KeyUse<'_>) -> Result<(), KeyRefusal> {
        if !self.secret_works(used_for.at) || !self.chain.iter().all(Key::is_live) {
            return Err(KeyRefusal::NotLive);
        }
        self.chain.iter().try_for_each(|key| used_for.check(&key.terms, key.is_live()))
    }
}

/// Charges for requests with the key itself, minus refunds, without its child keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyUsage {
    /// Since the key was created.
    pub total: Credits,
    /// On the UTC day of the request.
    pub daily: Credits,
    /// In its ISO week.
    pub weekly: Credits,
    /// In its month.
    pub monthly: Credits,
    /// The last day with an accepted request.
    pub last_used: Option<Day>,
}

/// A key, and how far it is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStatus {
    /// The key.
    pub key: Key,
    /// Whether all its parent keys are live, apart from their expiry.
    pub parents_are_live: bool,
    /// Spending that counts against its budget; `None` without a budget.
    pub spent: Option<Spent>,
    /// Its usage.
    pub usage: KeyUsage,
}
