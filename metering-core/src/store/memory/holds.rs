//! Reads holds.

use std::cmp::Reverse;

use async_trait::async_trait;

use crate::access::account::AccountId;
use crate::charging::hold::{Hold, HoldId};
use crate::clock::Timestamp;
use crate::store::memory::MemoryStore;
use crate::store::{HoldStore, StoreError};

use super::state::{Record, State};

#[async_trait]
impl HoldStore for MemoryStore {
    async fn hold(&self, id: &HoldId) -> Result<Option<Hold>, StoreError> {
        Ok(self.state()?.hold(id).map(|(_, hold)| hold.clone()))
    }

    async fn open_holds(&self, account: &AccountId, limit: u32) -> Result<Vec<Hold>, StoreError> {
        let state = self.state()?;
        let mut open: Vec<_> = state.record(account).into_iter().flat_map(Record::open_holds).cloned().collect();
        open.sort_by_key(|hold| Reverse((hold.created_at, hold.id)));
        open.truncate(limit as usize);
        Ok(open)
    }

    async fn expired_holds(&self, now: Timestamp, limit: u32) -> Result<Vec<Hold>, StoreError> {
        let state = self.state()?;
        let open = state.accounts.iter().flat_map(Record::open_holds);
        let mut due: Vec<_> = open.filter(|hold| hold.expires_at <= now).cloned().collect();
        due.sort_by_key(|hold| (hold.expires_at, hold.id));
        due.truncate(limit as usize);
        Ok(due)
    }
}

impl State {
    /// A hold, and the index of its account.
    pub(super) fn hold(&self, id: &HoldId) -> Option<(usize, &Hold)> {
        let mut accounts = self.accounts.iter().enumerate();
        accounts.find_map(|(index, record)| Some((index, record.holds.get(id)?)))
    }
}

impl Record {
    pub(super) fn open_holds(&self) -> impl Iterator<Item = &Hold> {
        self.holds.values().filter(|hold| hold.settled.is_none())
    }
}
