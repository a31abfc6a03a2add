//! The storage contract. A backend is a type that implements [`Store`] and passes the conformance suite.
//!
//! The contract has these parts: [`Store`] for accounts, charges and usage is all that charging needs. A service that
//! sells plans on chains needs a [`PaymentStore`] too, one with free signups a [`SignupStore`], one that operators
//! administer an [`OperatorStore`], one whose customers stay signed in a [`BrowserSessionStore`], one whose accounts have
//! members a [`MemberStore`], or children a [`ChildAccountStore`], one that gives programs access by OAuth an
//! [`OAuthStore`], one that refills accounts a [`RefillStore`], one that sends webhooks an [`EventStore`], one that sends
//! usage to sinks a [`UsageSinkStore`], one that accepts signed authorizations an [`AuthorizationStore`], one that accounts
//! of another service can move to an [`ImportStore`], one that records which catalogue was in force when a [`PriceStore`],
//! and one that logs every posting a [`LogStore`].
//! [`decision`](crate::backend::decision) has the rules of every write.

mod authorizations;
mod auto_top_ups;
mod browser_sessions;
mod child_accounts;
mod claims;
mod commit_source;
mod error;
mod events;
mod full;
mod holds;
mod imports;
mod inspection;
mod keys;
mod log;
mod members;
pub(crate) mod memory;
mod oauth;
mod operators;
mod page;
mod payments;
mod prices;
mod processors;
mod progress;
mod refills;
mod signups;
mod source_id;
mod store_clock;
mod usage_sinks;

use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;

use crate::access::account::{Account, AccountId, AgentName, Payer, RateLimits};
use crate::access::email::Email;
use crate::access::email_status::EmailStatus;
use crate::access::key::KeyHash;
use crate::charging::posting::{Outcome, Posting};
use crate::charging::volume::{CountedRoute, Volume};
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerEntry, NewLedgerEntry};
use crate::usage::{Activity, DailyTotal, DayRange, UsageReport};

pub use authorizations::{AuthorizationCredited, AuthorizationOpened, AuthorizationStore, NewAuthorization};
pub use auto_top_ups::{AutoTopUpChange, AutoTopUpSet, TopUpEnd};
pub use browser_sessions::BrowserSessionStore;
pub use child_accounts::{
    ChildAccount, ChildAccountStore, ChildClosed, ChildCreated, ChildUsage, CreditMove, CreditsMoved,
};
pub use claims::{Claim, Claimed, KeyDelivery};
pub use commit_source::{CommitBatch, CommitSource};
pub use refills::{RefillStore, Refilled};
pub use signups::{EmailVerified, SignupApproved, SignupOpened, SignupRedeemed, SignupStore};

pub use error::StoreError;
pub use events::{EventStore, WebhookCreated};
pub use full::{Erased, FullStore, Pending, Steps, in_transaction};
pub use holds::HoldStore;
pub use imports::ImportStore;
pub use inspection::Inspection;
pub use keys::{KeyChange, KeyChanged, KeyCreated, KeyStore, NewKey, TermsChange};
pub use log::{
    AccountRow, EpochReason, LogEpoch, LogSecret, LogStep, LogStore, Logged, LoggedAccount, MalformedPreviousLog,
    NewEpoch, NewLogged, PreviousLog, StoredBundle, Taken, Unlogged, UnloggedPosting, log_origin, origin_epoch,
};
pub use members::{Invited, MemberChange, MemberChanged, MemberStore};
pub use oauth::OAuthStore;
pub use operators::OperatorStore;
pub use page::{Cursor, Page};
pub use payments::{
    PaymentCredit, PaymentCredited, PaymentSettled, PaymentStore, QuoteOpened, QuotePrecedence, ReceiptBuyerAdded,
    SettlementChange,
};
pub use prices::PriceStore;
pub use processors::{ProcessorReversed, RecordedReversal, ReversalChange};
pub use progress::Progress;
pub use source_id::SourceId;
pub use store_clock::StoreClock;
pub use usage_sinks::{StagedPage, UsageSinkStore};

/// Stores accounts, keys, money and usage.
///
/// Each method is one *atomic operation*: when it returns, either all of it is on disk or nothing happened. There is no
/// begin or commit to misuse. Expected outcomes (an email address that is taken, an account that does not exist) are
/// values; a [`StoreError`] means that the backend itself failed.
///
/// For every account, in every state that a reader can see:
/// `balance = purchased + granted − used − held = Σ ledger − Σ daily totals − Σ open holds`, exactly.
///
/// Methods may be called from any number of tasks, and from several processes if the backend lets several open the same
/// data. All calls together behave as if they ran one after the other.
///
/// Call it directly for what [`Service`](crate::Service) does not cover:
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::{ApiKey, Clock, MemoryStore, Service, Store, SystemClock, SystemRandomness};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// let service = Service::with_defaults(Arc::clone(&store));
/// let (account, old_key) = service.open_account("my-agent", "2".parse()?).await?;
///
/// // Replace the account's key, and later revoke the account.
/// let new_key = ApiKey::generate(&SystemRandomness);
/// store.replace_key(&account.id, new_key.hash(), SystemClock.now()).await?;
/// assert_eq!(store.live_keys(&[old_key.hash(), new_key.hash()], SystemClock.now()).await?, [false, true]);
/// store.revoke_account(&account.id, SystemClock.now()).await?;
/// assert_eq!(store.account_by_key(&new_key.hash()).await?, None);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Store: KeyStore + HoldStore {
    /// Decides and records a batch of charges, refunds and updates of holds, in order, in one durable transaction.
    ///
    /// The outcomes are in the order of `postings`, and are durable when they are returned. The batch is decided with
    /// the keys, limits and balances at the moment of the commit, so a revocation, a rotation or a top-up takes effect
    /// as soon as its own method returns, in every process. On an error nothing of the batch happened, unless
    /// [`StoreError::outcome_is_unknown`]. A posting that the store cannot record is [`Outcome::Failed`], and the
    /// others are still recorded.
    ///
    /// The outcome of an accepted charge with a request id is kept for
    /// [`RequestId::RETENTION`](crate::RequestId::RETENTION) under the key that it came with, also after a rotation.
    /// Until then a charge with the same id gets the first outcome; after that the id is new, even if the row still
    /// exists. Refusals are not kept.
    ///
    /// A hold lowers the balance until it is settled. A refund is booked on the day of its charge, and a hold's
    /// captured amount on the day of the hold, even for a revoked account, so records stay exact.
    async fn commit(&self, postings: Vec<Posting>, now: Timestamp) -> Result<Vec<Outcome>, StoreError>;

    /// Creates an account with its key and its first ledger entries.
    ///
    /// Among the accounts that are not revoked, at most one holds each email address (compared case-insensitively), and
    /// each payer address occurs at most once. An id or a key that any account ever had is an error, and nothing is
    /// created. [`create_account`](crate::backend::decision::create_account) has the refusals in order.
    async fn create_account(&self, account: NewAccount) -> Result<Created, StoreError>;

    /// The account with that id, revoked or not.
    async fn account(&self, id: &AccountId) -> Result<Option<Account>, StoreError>;

    /// The account that a secret belongs to, as [`KeyStore::key_holder`]: whether the key may be used is another
    /// question.
    async fn account_by_key(&self, key: &KeyHash) -> Result<Option<Account>, StoreError> {
        Ok(self.key_holder(key).await?.map(|holder| holder.account))
    }

    /// Accounts in order of creation, at most `limit` after `after`.
    async fn accounts(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<Account>, StoreError>;

    /// Writes a ledger entry and changes the totals as [`NewLedgerEntry::applied_to`] does.
    async fn post_entry(&self, id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Result<Posted, StoreError>;

    /// Replaces the caps of an account, revoked or not. Accepted requests in the current windows stay counted. `None`
    /// when there is no such account.
    async fn set_limits(&self, id: &AccountId, limits: RateLimits) -> Result<Option<Account>, StoreError>;

    /// Replaces the limit on tokens per minute of an account, revoked or not; 0 removes it. The tokens counted in the
    /// current minute while there was a limit stay counted. `None` when there is no such account.
    async fn set_token_limit(&self, id: &AccountId, tokens_per_minute: u32) -> Result<Option<Account>, StoreError>;

    /// Revokes an account and all its keys. A second call changes nothing and returns the account. Its records are
    /// kept. `None` when there is no such account.
    async fn revoke_account(&self, id: &AccountId, now: Timestamp) -> Result<Option<Account>, StoreError>;

    /// Replaces the keys of an account that can manage keys: its first key gets this secret, and the others are
    /// revoked. Keys that cannot manage keys, and were not made by a revoked one, are kept. `None` when there is no
    /// such account, or it is revoked. A secret that any key ever had is an error, and nothing changes. If the account
    /// belongs to a paid quote whose key nobody has claimed, the quote then counts as claimed.
    /// [`replace_key`](crate::backend::decision::replace_key) decides the changes.
    async fn replace_key(&self, id: &AccountId, key: KeyHash, now: Timestamp) -> Result<Option<Account>, StoreError>;

    /// Rotates the key that has the secret `old` ([`KeyChange::Rotate`]), and no other. `None`, and nothing changes,
    /// when it does not work ([`KeyHolder::is_live`](crate::access::KeyHolder::is_live)), or any key ever had the new
    /// one: if several callers compete, one succeeds. A paid quote whose key nobody has claimed then counts as claimed.
    async fn replace_live_key(
        &self,
        old: &KeyHash,
        key: KeyHash,
        now: Timestamp,
    ) -> Result<Option<Account>, StoreError>;

    /// The usage of a range of days, and the account, as one consistent read. The cost depends on the number of days
    /// and distinct routes, not on the number of requests. An error when the credits added in those days exceed the
    /// range of [`Credits`].
    async fn usage_report(&self, id: &AccountId, days: DayRange) -> Result<Option<UsageReport>, StoreError>;

    /// How many requests an account has made to each route with volume tiers, in the newest month that had any, ordered
    /// by route and method. Empty when there is no such account.
    async fn volumes(&self, id: &AccountId) -> Result<Vec<(CountedRoute, Volume)>, StoreError>;

    /// An account's recent activity, newest first; empty when there is no such account.
    ///
    /// At least the last [`crate::usage::ACTIVITY_KEPT`] entries, if `limit` allows. A store keeps at most about twice
    /// as many usage and refund entries.
    async fn activity(&self, id: &AccountId, limit: u32) -> Result<Vec<Activity>, StoreError>;

    /// Ledger entries of all accounts in the order written, at most `limit` after `after`.
    async fn ledger(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LedgerEntry>, StoreError>;

    /// The ledger entries of one account in the order written, at most `limit` after `after`. A cursor of this list is
    /// the number of an entry ([`LedgerEntry::id`]). Empty when there is no such account.
    async fn account_ledger(
        &self,
        id: &AccountId,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LedgerEntry>, StoreError>;

    /// The daily totals of one account in a range of days, as one consistent read: by day, then route, method and
    /// source, in ascending order. Empty when there is no such account.
    async fn account_daily_totals(&self, id: &AccountId, days: DayRange) -> Result<Vec<DailyTotal>, StoreError>;

    /// How many requests all accounts made to each route in a range of days, most first; then by template and method.
    /// Reads the daily totals of those days, of all accounts.
    async fn route_calls(&self, days: DayRange) -> Result<Vec<(CountedRoute, u64)>, StoreError>;

    /// Daily totals of all accounts, oldest day first, at most `limit` after `after`.
    async fn daily_totals(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<DailyTotal>, StoreError>;

    /// Recomputes every account's totals from ledger and usage in one consistent read, and checks that every account
    /// has the right key. Corrupt data is an error.
    async fn verify(&self) -> Result<Verification, StoreError>;

    /// Deletes records that have expired by `now`, and returns their number. They stay deleted even for a caller whose
    /// clock lags. So are an account's ended keys beyond the newest [`Key::MAX_ENDED`](crate::access::Key::MAX_ENDED):
    /// [`keys_to_delete`](crate::backend::decision::keys_to_delete) chooses them.
    async fn forget_expired(&self, now: Timestamp) -> Result<u64, StoreError>;

    /// The time of the store's own clock, if that is not this machine's clock. Nodes that share a store use it
    /// ([`StoreClock`]).
    async fn clock(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    /// Checks that the store can be written to now, with room for more than a few charges.
    async fn check(&self) -> Result<(), StoreError>;

    /// Checks that the store is still the one that was opened, and that its file was not deleted or replaced. Cheap
    /// enough to call every second; writes nothing. On an error with [`StoreError::must_reopen`] the process must stop:
    /// anything it writes from then on would be lost.
    async fn check_identity(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// How many concurrent calls of [`Store::commit`] make sense: one, if all would wait for the same writer.
    fn commit_lanes(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    /// For a store that commits on a thread of its own: calls [`CommitSource::commit_next`] there, soon and again until
    /// it returns `false`, and then drops `source`. So no other thread has to run between two batches, and callers that
    /// requested it learn the decision while the batch is flushed ([`CommitBatch`]). Returns `false`, and does nothing,
    /// if the store has no such thread: batches then come through [`Store::commit`].
    ///
    /// The store may be dropped before: waiting postings are still committed.
    fn commit_from(&self, _source: Arc<dyn CommitSource>) -> bool {
        false
    }
}

/// An account to create.
///
/// ```
/// use metering_core::store::Created;
/// use metering_core::{
///     AccountId, ApiKey, Clock, MemoryStore, NewAccount, RateLimits, Store, SystemClock, SystemRandomness,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = MemoryStore::new();
/// let (id, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
/// let account = NewAccount {
///     email: Some("jo@example.com".parse()?),
///     limits: RateLimits::per_minute(60),
///     ..NewAccount::new(id, "my-agent".parse()?, key.hash(), SystemClock.now())
/// };
/// assert!(matches!(store.create_account(account.clone()).await?, Created::Account(_)));
/// let another = ApiKey::generate(&SystemRandomness);
/// let account = NewAccount { id: AccountId::generate(&SystemRandomness), key: another.hash(), ..account };
/// assert_eq!(store.create_account(account).await?, Created::EmailTaken);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct NewAccount {
    /// Its id.
    pub id: AccountId,
    /// The name that its owner gave it.
    pub agent_name: AgentName,
    /// Its owner's email address, if any.
    pub email: Option<Email>,
    /// Whether the address is verified. While that is pending, the account does not hold it.
    pub email_status: EmailStatus,
    /// The wallet that paid for it, if any.
    pub payer: Option<Payer>,
    /// Its request caps.
    pub limits: RateLimits,
    /// The hash of its key.
    pub key: KeyHash,
    /// Its first ledger entries.
    pub entries: Vec<NewLedgerEntry>,
    /// When it is created.
    pub created_at: Timestamp,
}

impl NewAccount {
    /// Its email address, if it will hold it.
    #[must_use]
    pub fn held_email(&self) -> Option<&Email> {
        self.email.as_ref().filter(|_| self.email_status.is_holding())
    }

    /// An account with the default caps, and without email address, wallet or credits. Set the fields that should
    /// differ.
    #[must_use]
    pub fn new(id: AccountId, agent_name: AgentName, key: KeyHash, created_at: Timestamp) -> Self {
        let limits = RateLimits::default();
        let email_status = EmailStatus::Unchecked;
        Self { id, agent_name, email: None, email_status, payer: None, limits, key, entries: Vec::new(), created_at }
    }
}

/// The outcome of [`Store::create_account`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It was created.
    Account(Account),
    /// Another account that is not revoked has the email address; nothing was created.
    EmailTaken,
    /// Another account that is not revoked has the payer's address; nothing was created.
    PayerTaken,
    /// The first entries add up to more than a balance can hold; nothing was created.
    OutOfRange,
}

/// The outcome of [`Store::post_entry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posted {
    /// It was written. The account after the entry.
    Account(Account),
    /// There is no such account, or it is revoked; nothing was written.
    NoSuchAccount,
    /// The balance or a total could not hold the amount; nothing was written.
    OutOfRange,
}

/// The result of [`Store::verify`].
///
/// ```
/// # use metering_core::{MemoryStore, Store, StoreError};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let store = MemoryStore::new();
/// let verification = store.verify().await?;
/// assert_eq!(verification.discrepancies, []);
/// # Ok::<(), StoreError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// The number of accounts checked.
    pub accounts: u64,
    /// Every amount that differs from the sum of ledger and usage.
    pub discrepancies: Vec<Discrepancy>,
    /// Budgets of keys (`key_spent`) that are lower than the bookings since their period began. That is not a
    /// discrepancy: when a clock is set back by more than a day, the period begins again, and the budget with it.
    pub restarted_budgets: Vec<Discrepancy>,
}

/// An amount that differs from the sum of ledger and usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discrepancy {
    /// The account.
    pub account: AccountId,
    /// The name of the amount: `balance`, `purchased`, `granted`, `used`, `held`, or `key_spent` for a key's budget.
    pub amount: &'static str,
    /// The amount in the account's record.
    pub recorded: Credits,
    /// The sum of ledger and usage.
    pub computed: Credits,
}
