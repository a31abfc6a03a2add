//! The storage contract. A backend is a type that implements [`Store`] and passes the conformance suite.
//!
//! The contract has three parts: [`Store`] is about accounts, charges and usage, [`PaymentStore`] about the money that
//! arrives by chain, [`SignupStore`] about signing up without paying.

mod payments;
mod signups;

use std::num::NonZeroUsize;

use async_trait::async_trait;

use crate::account::{Account, AccountId, AgentName, Email, Payer, RateLimits};
use crate::clock::Timestamp;
use crate::credits::Credits;
use crate::key::KeyHash;
use crate::ledger::{LedgerEntry, NewLedgerEntry};
use crate::plan::{Plan, PlanKey};
use crate::tally::{Outcome, Posting};
use crate::usage::{Activity, DailyTotal, DayRange, UsageReport};

pub use signups::{SignupApproved, SignupOpened, SignupRedeemed, SignupStore};

pub use payments::{
    Claim, Claimed, KeyDelivery, PaymentCredit, PaymentCredited, PaymentSettled, PaymentStore, QuoteOpened,
    QuotePrecedence, SettlementChange,
};

/// Where accounts, keys, money and usage are kept.
///
/// Each method is one *atomic domain fact*: it happens as a whole and is on disk when the method returns, or it did
/// not happen. There is no begin and commit to hold wrong. Expected answers (an email that is taken, an account that
/// does not exist) are values; a [`StoreError`] means that the backend itself is in trouble.
///
/// For every account, at every moment that a reader can see:
/// `balance = purchased + granted − used = Σ ledger − Σ daily totals`, exactly.
///
/// Methods may be called from any number of tasks, and by several processes where the backend allows several to open
/// the same data; all of them together behave as if the calls ran one after the other.
#[async_trait]
pub trait Store: PaymentStore + SignupStore {
    /// Decides and records a batch of charges and refunds in one durable transaction, in their order.
    ///
    /// The answers are in the order of `postings`, and each holds when it is returned, whatever happens to the
    /// process. Keys, limits and balances are those of the moment of the commit, so that a revocation, a rotation or
    /// a top-up counts from the moment that its own method returned, in whichever process that was. On an error
    /// nothing of the batch happened, unless [`StoreError::outcome_is_unknown`]. A posting that the store cannot hold is
    /// [`Outcome::Failed`] and does not keep the others from being recorded.
    ///
    /// An accepted charge with a request id is remembered for [`RequestId::REMEMBERED`](crate::RequestId::REMEMBERED),
    /// in its account, whichever key it came with: until then the id is answered as it was at first, and after that
    /// it is new, whether or not it was forgotten yet. Refusals are not remembered. A refund is booked on the day of
    /// its charge, for a revoked account too: its records stay exact.
    async fn commit(&self, postings: Vec<Posting>, now: Timestamp) -> Result<Vec<Outcome>, StoreError>;

    /// Makes an account with its key and its first ledger entries.
    ///
    /// At most one account that is not revoked has a given email address, compared without case, and at most one a
    /// given payer's address; that one is taken is answered before anything that is wrong with the entries, the email
    /// first. An id or a key that an account ever had is an error, and nothing is made.
    async fn create_account(&self, account: NewAccount) -> Result<Created, StoreError>;

    /// The account of that id, revoked or not.
    async fn account(&self, id: &AccountId) -> Result<Option<Account>, StoreError>;

    /// The account that a live key belongs to.
    async fn account_by_key(&self, key: &KeyHash) -> Result<Option<Account>, StoreError>;

    /// Whether each of `keys` is live, in their order.
    async fn live_keys(&self, keys: &[KeyHash]) -> Result<Vec<bool>, StoreError>;

    /// Accounts in the order of their making, at most `limit` after `after`.
    async fn accounts(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<Account>, StoreError>;

    /// Writes a ledger entry and changes the balance by its amount, as [`NewLedgerEntry::applied_to`] says.
    async fn post_entry(&self, id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Result<Posted, StoreError>;

    /// Replaces an account's caps, revoked or not; requests already accepted in the running windows stay counted.
    /// `None` when there is no such account.
    async fn set_limits(&self, id: &AccountId, limits: RateLimits) -> Result<Option<Account>, StoreError>;

    /// Revokes an account and its key, once: a second call changes nothing, and is answered with the account as it is.
    /// Its records stay. `None` when there is no such account.
    async fn revoke_account(&self, id: &AccountId, now: Timestamp) -> Result<Option<Account>, StoreError>;

    /// Puts `key` in the place of an account's key, which is refused from then on. `None` when there is no such
    /// account, or it is revoked. A key that an account ever had is an error, and nothing changes. A quote whose key
    /// nobody had yet counts as claimed from then on.
    async fn replace_key(&self, id: &AccountId, key: KeyHash, now: Timestamp) -> Result<Option<Account>, StoreError>;

    /// The usage of some days, with the account, all of one moment. The cost depends on days and distinct routes,
    /// not on how many requests were made. An error when what was added in those days is more than
    /// [`Credits`](crate::Credits) can hold.
    async fn usage_report(&self, id: &AccountId, days: DayRange) -> Result<Option<UsageReport>, StoreError>;

    /// An account's recent activity in the reverse order of its writing, and nothing when there is no such account.
    ///
    /// At least its last [`crate::ACTIVITY_KEPT`] entries if `limit` allows; a store keeps about twice as many of
    /// usage and refunds at most.
    async fn activity(&self, id: &AccountId, limit: u32) -> Result<Vec<Activity>, StoreError>;

    /// Ledger entries of all accounts in the order of their writing, at most `limit` after `after`.
    async fn ledger(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LedgerEntry>, StoreError>;

    /// Daily totals of all accounts by rising day, at most `limit` after `after`.
    async fn daily_totals(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<DailyTotal>, StoreError>;

    /// All plans, by sort order, then chain, then id.
    async fn plans(&self) -> Result<Vec<Plan>, StoreError>;

    /// Adds plans or replaces those of the same key, in their order, all or none. They are valid: callers ask
    /// [`Plan::validate`] first.
    async fn put_plans(&self, plans: Vec<Plan>) -> Result<(), StoreError>;

    /// Removes a plan; `false` when there is none of that key.
    async fn remove_plan(&self, key: &PlanKey) -> Result<bool, StoreError>;

    /// Puts a plan on sale or takes it off; `false` when there is none of that key.
    async fn set_plan_active(&self, key: &PlanKey, active: bool) -> Result<bool, StoreError>;

    /// Recomputes every account's money from ledger and usage, in one consistent read, and proves that every account
    /// has the key it should have. Corrupt data is an error.
    async fn verify(&self) -> Result<Verification, StoreError>;

    /// Forgets what has expired at `now`, and returns how much that was. It stays forgotten, for a clock that lags
    /// too.
    async fn forget_expired(&self, now: Timestamp) -> Result<u64, StoreError>;

    /// The time by the store's own clock, where it has one that is not this machine's: nodes that share a store must
    /// agree with it.
    async fn clock(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    /// Whether the store can be written to at this moment, with room for more than a few charges.
    async fn check(&self) -> Result<(), StoreError>;

    /// Whether the store is still the one that was opened: its file was neither deleted nor replaced. Cheap enough to be
    /// called every second; writes nothing. An error that [`StoreError::must_reopen`] means that the process has to
    /// stop, since what it writes from now on would be lost.
    async fn check_identity(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// How many calls of [`Store::commit`] are worth having under way at one time. One, where all of them would wait
    /// for the same writer.
    fn commit_lanes(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }
}

/// An account to be made.
#[derive(Debug, Clone)]
pub struct NewAccount {
    /// Its id.
    pub id: AccountId,
    /// What its owner calls it.
    pub agent_name: AgentName,
    /// Its owner's email address, if any.
    pub email: Option<Email>,
    /// The wallet that pays for it, if any.
    pub payer: Option<Payer>,
    /// Its request caps.
    pub limits: RateLimits,
    /// The hash of its key.
    pub key: KeyHash,
    /// Its first ledger entries.
    pub entries: Vec<NewLedgerEntry>,
    /// When it is made.
    pub created_at: Timestamp,
}

impl NewAccount {
    /// An account with the usual caps, and no email, wallet or credits; set the fields that are to differ.
    #[must_use]
    pub fn new(id: AccountId, agent_name: AgentName, key: KeyHash, created_at: Timestamp) -> Self {
        let limits = RateLimits::default();
        Self { id, agent_name, email: None, payer: None, limits, key, entries: Vec::new(), created_at }
    }
}

/// The answer to [`Store::create_account`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It was made.
    Account(Account),
    /// Another account that is not revoked has the email address; nothing was made.
    EmailTaken,
    /// Another account that is not revoked has the payer's address; nothing was made.
    PayerTaken,
    /// The first entries add up to more than a balance can hold; nothing was made.
    OutOfRange,
}

/// The answer to [`Store::post_entry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posted {
    /// It was written; the account after it.
    Account(Account),
    /// There is no such account, or it is revoked; nothing was written.
    NoSuchAccount,
    /// The balance or a total could not hold the amount; nothing was written.
    OutOfRange,
}

/// A place in a list, for its next page. Opaque: its form is the backend's, and one that is not is an error.
///
/// Following the cursors gives every item once that was there at the start, whatever is written meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(String);

impl Cursor {
    /// A cursor of a backend's making.
    #[must_use]
    pub fn new(place: impl Into<String>) -> Self {
        Self(place.into())
    }

    /// What the backend put in.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<Cursor>,
}

/// What [`Store::verify`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// How many accounts were recomputed.
    pub accounts: u64,
    /// Every amount that is not what ledger and usage add up to.
    pub discrepancies: Vec<Discrepancy>,
}

/// An amount that does not add up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discrepancy {
    /// Whose.
    pub account: AccountId,
    /// Which: `balance`, `purchased`, `granted` or `used`.
    pub amount: &'static str,
    /// What the account says.
    pub recorded: Credits,
    /// What ledger and usage add up to.
    pub computed: Credits,
}

/// What can go wrong with a backend.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot do it now, and did nothing; trying again later may work.
    #[error("the store is unavailable: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The commit itself failed, so that it may or may not turn out to have happened. The store can still be used.
    #[error("the commit failed, and may or may not have happened: {0}")]
    OutcomeUnknown(String),
    /// A flush to disk failed at the commit, or the file under it is gone: it may or may not have happened. The process
    /// must stop and open the store again; retrying an fsync that failed can report success for data that is lost.
    #[error("the store failed while writing to disk and must be opened again: {0}")]
    Broken(String),
    /// An earlier failure ended the use of the store; nothing was done. The process must stop and open it again.
    #[error("the store can no longer be used and must be opened again: {0}")]
    Closed(String),
    /// What was read is damaged, or is not a store.
    #[error("the store cannot be used: {0}")]
    Corrupt(String),
    /// The data was written by a newer version of this software.
    #[error("the data has schema version {found}, this program knows versions up to {supported}; use a newer program")]
    NewerVersion {
        /// The data's version.
        found: i64,
        /// The newest that is known.
        supported: i64,
    },
}

impl StoreError {
    /// Whether what was asked for may have happened all the same. After every other error, nothing of it did.
    #[must_use]
    pub const fn outcome_is_unknown(&self) -> bool {
        matches!(self, Self::OutcomeUnknown(_) | Self::Broken(_))
    }

    /// Whether the process has to stop and open the store again.
    #[must_use]
    pub const fn must_reopen(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::Closed(_))
    }
}
