//! The part of the storage contract for API keys: their terms, and the chain of keys that each belongs to.

use std::fmt;

use async_trait::async_trait;

use crate::access::account::AccountId;
use crate::access::budget::BudgetReset;
use crate::access::issued_key::{Key, KeyHolder, KeyStatus};
use crate::access::key::KeyHash;
use crate::access::key_id::{KeyId, KeyNumber};
use crate::access::key_terms::{KeyName, KeyTerms, WiderTerms};
use crate::access::network::Networks;
use crate::access::route_pattern::RoutePatterns;
use crate::access::scope::Scopes;
use crate::charging::hold::HoldId;
use crate::clock::{Day, Timestamp};
use crate::money::credits::Credits;
use crate::store::{Cursor, Page, StoreError};
use crate::usage::KeyLabel;

/// Stores the keys of accounts.
///
/// An account has its first key from the beginning ([`Key::first`]). Every other key has a parent, which made it. A key
/// that is not live stops all its child keys. A change takes effect with the next commit of charges, in every process.
#[async_trait]
pub trait KeyStore: Send + Sync + fmt::Debug {
    /// The owner of a secret; `None` for one that is unknown or revoked, or when the account is revoked. The keys of
    /// the chain may be disabled, leaked, revoked or expired, and the secret may have expired: see
    /// [`KeyHolder::check`].
    async fn key_holder(&self, secret: &KeyHash) -> Result<Option<KeyHolder>, StoreError>;

    /// Whether each of these secrets works at `now` ([`KeyHolder::is_live`]), in the same order.
    async fn live_keys(&self, secrets: &[KeyHash], now: Timestamp) -> Result<Vec<bool>, StoreError>;

    /// The keys of an account that are not revoked, in the order of creation, at most `limit` after `after`, with their
    /// usage as of the day `today`. Empty when there is no such account.
    async fn keys(
        &self,
        account: &AccountId,
        after: Option<&Cursor>,
        limit: u32,
        today: Day,
    ) -> Result<Page<KeyStatus>, StoreError>;

    /// One key of an account, revoked or not.
    async fn key(&self, account: &AccountId, id: &KeyId, today: Day) -> Result<Option<KeyStatus>, StoreError>;

    /// The names of all keys of an account, and of those that ended and are still kept, by number. Empty when there is
    /// no such account.
    async fn key_labels(&self, account: &AccountId) -> Result<Vec<KeyLabel>, StoreError>;

    /// The keys that the id of a charged request may name ([`HoldId::key_hashes`]), with their accounts: those with such a
    /// secret, revoked or not, that is still kept. At most 20; more than one is rare.
    async fn keys_of_request(&self, id: &HoldId) -> Result<Vec<(AccountId, KeyNumber)>, StoreError>;

    /// Creates a key. [`create_key`](crate::backend::decision::create_key) has the refusals in order. If the
    /// same parent made a key with this secret before, and it is not revoked, the request was repeated, and the outcome
    /// is that key.
    async fn create_key(&self, new: NewKey) -> Result<KeyCreated, StoreError>;

    /// Changes a key. `actor` is the requesting key; `None` is the operator.
    /// [`change_key`](crate::backend::decision::change_key) has the refusals in order.
    ///
    /// The child keys of one that is revoked are revoked with it. When a budget is set or its period changes, spending
    /// in the period so far counts: the sum of the daily totals and open holds of the key and its child keys.
    async fn change_key(
        &self,
        account: &AccountId,
        id: &KeyId,
        actor: Option<&KeyId>,
        change: KeyChange,
        now: Timestamp,
    ) -> Result<KeyChanged, StoreError>;

    /// Makes a key that leaked unusable: its secrets are revoked, and its child keys stop. The key is kept, so it can
    /// be rotated, which revokes its child keys. If the secret is in its grace period, only the grace period ends.
    /// `None`, and nothing changes, if the secret is unknown or no longer works.
    async fn report_leaked(&self, secret: &KeyHash, now: Timestamp) -> Result<Option<Key>, StoreError>;
}

/// A key to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Its account.
    pub account: AccountId,
    /// The key that makes it; `None` when the operator does. It is then a child of the account's first key.
    pub parent: Option<KeyId>,
    /// The hash of its secret.
    pub secret: KeyHash,
    /// Its terms. Expiry, routes and networks that are not set are taken from its parent.
    pub terms: KeyTerms,
    /// How many keys an account may have that are neither revoked nor expired.
    pub max_keys: u32,
    /// When it is created.
    pub created_at: Timestamp,
}

/// The outcome of [`KeyStore::create_key`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyCreated {
    /// It was created, now or by the same request before.
    Key(Key),
    /// There is no such account, or it is revoked; nothing was created.
    NoSuchAccount,
    /// The parent is not live, or may not make keys; nothing was created.
    NoSuchParent,
    /// The secret is, or was, that of another key; nothing was created.
    SecretUsed,
    /// The chain of keys would be longer than [`Key::MAX_DEPTH`]; nothing was created.
    TooDeep,
    /// The account has reached its limit of keys; nothing was created.
    TooMany,
    /// It would allow more than its parent does; nothing was created.
    Wider(WiderTerms),
}

/// A change of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyChange {
    /// Changes some of its terms.
    Terms(Box<TermsChange>),
    /// Replaces its secret. A key that leaked works again with the new one.
    Rotate {
        /// The hash of the new secret.
        secret: KeyHash,
        /// Until when the old secrets still work; `None` for no longer.
        old_until: Option<Timestamp>,
    },
    /// Revokes it permanently, and its child keys.
    Revoke,
}

/// Terms to change; `None` leaves a term unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TermsChange {
    /// The name.
    pub name: Option<KeyName>,
    /// The scopes.
    pub scopes: Option<Scopes>,
    /// The routes; an empty list allows all that the parent allows.
    pub routes: Option<RoutePatterns>,
    /// The networks; an empty list allows all that the parent allows.
    pub networks: Option<Networks>,
    /// The expiry; `Some(None)` means the parent's.
    pub expires_at: Option<Option<Timestamp>>,
    /// Whether it is switched off.
    pub disabled: Option<bool>,
    /// The requests per minute; 0 means no limit.
    pub requests_per_minute: Option<u32>,
    /// The requests per day; 0 means no limit.
    pub requests_per_day: Option<u32>,
    /// The tokens per minute; 0 means no limit.
    pub tokens_per_minute: Option<u32>,
    /// The requests in flight; 0 means no limit.
    pub max_in_flight: Option<u32>,
    /// The event `balance.low` is sent when less than this remains of the budget; `None` for never.
    pub alert_below: Option<Option<Credits>>,
    /// The credits of the budget; `Some(None)` removes it.
    pub limit: Option<Option<Credits>>,
    /// When the budget starts again; `Some(None)` means never.
    pub limit_reset: Option<Option<BudgetReset>>,
}

/// The outcome of [`KeyStore::change_key`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyChanged {
    /// It was changed. The key after the change.
    Key(Key),
    /// There is no such key that the actor may change, or it is revoked; nothing changed.
    NoSuchKey,
    /// The new secret is, or was, that of a key; nothing changed.
    SecretUsed,
    /// The account's first key keeps its scopes, does not expire, and is neither disabled nor revoked; nothing changed.
    FirstKey,
    /// A key that leaked is not live until it is rotated; nothing changed.
    Leaked,
    /// A budget's period cannot be set without its credits; nothing changed.
    NoLimit,
    /// It would allow more than its parent, or than a key that changes itself; nothing changed.
    Wider(WiderTerms),
}
