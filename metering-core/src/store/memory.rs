//! A store in memory for charging alone, for tests and trials, and as the simplest implementation of [`Store`].
//!
//! Everything is behind one mutex, so every method is atomic and they run in sequence. Nothing is on disk: the data is
//! lost with the store. Where this store and another backend differ and the contract does not decide, this one is
//! right.

use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;

use crate::access::account::{Account, AccountId, RateLimits};
use crate::access::key::KeyHash;
use crate::charging::posting::{Outcome, Posting};
use crate::charging::volume::{CountedRoute, Volume};
use crate::clock::Timestamp;
use crate::money::ledger::{LedgerEntry, NewLedgerEntry};
use crate::store::{Created, Cursor, NewAccount, Page, Posted, Store, StoreError, Verification};
use crate::usage::{Activity, DailyTotal, DayRange, UsageReport};

mod commit;
mod holds;
mod keys;
mod page;
mod report;
mod state;
#[cfg(test)]
mod tests;

use state::State;

/// A [`Store`] that keeps accounts, keys, charges and holds in memory. It has no payments, signups or webhooks; for a
/// [`FullStore`](crate::FullStore) in memory, see `SqliteStore::in_memory` of `metering-sqlite`.
///
/// ```
/// use metering_core::{MemoryStore, Store};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// assert_eq!(store.verify().await?.accounts, 0);
/// # Ok::<(), metering_core::StoreError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        self.state.lock().map_err(|_| StoreError::Closed("a thread panicked while it held the store's lock".to_owned()))
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, postings: Vec<Posting>, now: Timestamp) -> Result<Vec<Outcome>, StoreError> {
        Ok(self.state()?.commit(postings, now))
    }

    async fn create_account(&self, account: NewAccount) -> Result<Created, StoreError> {
        self.state()?.create_account(account)
    }

    async fn account(&self, id: &AccountId) -> Result<Option<Account>, StoreError> {
        Ok(self.state()?.record(id).map(|record| record.account.clone()))
    }

    async fn accounts(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<Account>, StoreError> {
        self.state()?.accounts_page(after, limit)
    }

    async fn post_entry(&self, id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Result<Posted, StoreError> {
        Ok(self.state()?.post_entry(id, entry, now))
    }

    async fn set_limits(&self, id: &AccountId, limits: RateLimits) -> Result<Option<Account>, StoreError> {
        Ok(self.state()?.record_mut(id).map(|record| {
            record.account.limits = limits;
            record.account.clone()
        }))
    }

    async fn set_token_limit(&self, id: &AccountId, tokens_per_minute: u32) -> Result<Option<Account>, StoreError> {
        Ok(self.state()?.record_mut(id).map(|record| {
            record.account.tokens_per_minute = tokens_per_minute;
            record.account.clone()
        }))
    }

    async fn revoke_account(&self, id: &AccountId, now: Timestamp) -> Result<Option<Account>, StoreError> {
        Ok(self.state()?.revoke_account(id, now))
    }

    async fn replace_key(&self, id: &AccountId, key: KeyHash, now: Timestamp) -> Result<Option<Account>, StoreError> {
        self.state()?.replace_key(id, key, now)
    }

    async fn replace_live_key(
        &self,
        old: &KeyHash,
        key: KeyHash,
        now: Timestamp,
    ) -> Result<Option<Account>, StoreError> {
        self.state()?.replace_live_key(old, key, now)
    }

    async fn usage_report(&self, id: &AccountId, days: DayRange) -> Result<Option<UsageReport>, StoreError> {
        self.state()?.usage_report(id, days)
    }

    async fn volumes(&self, id: &AccountId) -> Result<Vec<(CountedRoute, Volume)>, StoreError> {
        let state = self.state()?;
        let volumes = state.record(id).into_iter().flat_map(|record| &record.volumes);
        Ok(volumes.map(|(route, volume)| (route.clone(), volume.clone())).collect())
    }

    async fn activity(&self, id: &AccountId, limit: u32) -> Result<Vec<Activity>, StoreError> {
        Ok(self.state()?.activity(id, limit))
    }

    async fn ledger(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LedgerEntry>, StoreError> {
        self.state()?.ledger_page(after, limit)
    }

    async fn account_ledger(
        &self,
        id: &AccountId,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LedgerEntry>, StoreError> {
        self.state()?.account_ledger_page(id, after, limit)
    }

    async fn account_daily_totals(&self, id: &AccountId, days: DayRange) -> Result<Vec<DailyTotal>, StoreError> {
        self.state()?.account_daily_totals(id, days)
    }

    async fn route_calls(&self, days: DayRange) -> Result<Vec<(CountedRoute, u64)>, StoreError> {
        Ok(self.state()?.route_calls(days))
    }

    async fn daily_totals(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<DailyTotal>, StoreError> {
        self.state()?.daily_totals_page(after, limit)
    }

    async fn verify(&self) -> Result<Verification, StoreError> {
        self.state()?.verify()
    }

    async fn forget_expired(&self, now: Timestamp) -> Result<u64, StoreError> {
        Ok(self.state()?.forget_expired(now))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.state().map(|_| ())
    }
}
