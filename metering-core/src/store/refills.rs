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

    /// Replaces the rule. Accounts that had their turn in the current period of the new rule are not refilled again.
    async fn set_refill(&self, refill: Option<Refill>) -> Result<(), StoreError>;

    /// Gives the next `limit` accounts, in the order of their creation, their turn in the period of `now`: refills those
    /// that are due, with the rule as it is in this transaction. Each account has one turn in a period, however many
    /// processes call this. [`refill_account`](crate::store::backend::decision::refill_account) says what it gets.
    ///
    /// Call it until [`Refilled::is_done`]. Once all accounts had their turn, further calls in the same period, or with
    /// the time of an earlier one, read the rule and write nothing. `limit` must be above zero.
    async fn refill_accounts(&self, now: Timestamp, limit: u32) -> Result<Refilled, StoreError>;
}

/// The outcome of [`RefillStore::refill_accounts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refilled {
    /// How many accounts got credits.
    pub accounts: u64,
    /// How many credits they got in all.
    pub credits: Credits,
    /// Whether all accounts had their turn.
    pub is_done: bool,
}

impl Refilled {
    /// Nothing was due.
    pub const NOTHING: Self = Self { accounts: 0, credits: Credits::ZERO, is_done: true };

    /// Counts an account that got `amount`. A sum that is out of range stays at the largest amount.
    pub fn add(&mut self, amount: Credits) {
        self.accounts += 1;
        self.credits = self.credits.checked_add(amount).unwrap_or(Credits::MAX);
    }
}
