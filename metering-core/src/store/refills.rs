//! The part of the storage contract for recurring credits.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::money::refill::Refill;
use crate::store::{Store, StoreError};

/// Stores the rule for recurring credits, and refills accounts by it.
#[async_trait]
pub trait RefillStore: Store {
    /// The rule; `None` when accounts are not refilled.
    async fn refill(&self) -> Result<Option<Refill>, StoreError>;

    /// Replaces the rule. Accounts that were already processed in the current period of the new rule
    /// are not refilled again in it.
    async fn set_refill(&self, refill: Option<Refill>) -> Result<(), StoreError>;

    /// Processes the next `limit` accounts, oldest first, for the period of `now`, and refills those that are due. Each
    /// account is processed once per period, no matter how many processes call this, by the rule that is stored when
    /// the transaction runs. [`refill_account`](crate::backend::decision::refill_account) decides the amount.
    ///
    /// Call it until [`Refilled::is_done`]. After that, calls in the same period or with an earlier time read the rule
    /// and write nothing. `limit` must be above zero.
    async fn refill_accounts(&self, now: Timestamp, limit: u32) -> Result<Refilled, StoreError>;
}

/// The outcome of [`RefillStore::refill_accounts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refilled {
    /// How many accounts got credits.
    pub accounts: u64,
    /// How many credits they got in all.
    pub credits: Credits,
    /// Whether every account was processed.
    pub is_done: bool,
}

impl Refilled {
    /// Nothing was due.
    pub const NOTHING: Self = Self { accounts: 0, credits: Credits::ZERO, is_done: true };

    /// Counts an account that got `amount`. A sum that is out of range is capped at the largest amount.
    pub fn add(&mut self, amount: Credits) {
        self.accounts += 1;
        self.credits = self.credits.checked_add(amount).unwrap_or(Credits::MAX);
    }
}
