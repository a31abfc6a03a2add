//! Implements the part of the storage contract for holds. A reader sees what was committed before.

use async_trait::async_trait;
use metering_core::charging::{Hold, HoldId};
use metering_core::store::HoldStore;
use metering_core::{AccountId, Timestamp};

use crate::charging::holds;
use crate::error::Result;
use crate::store::SqliteStore;

#[async_trait]
impl HoldStore for SqliteStore {
    async fn hold(&self, id: &HoldId) -> Result<Option<Hold>> {
        let id = *id;
        let found = self.read(move |snapshot| holds::by_id(snapshot, &id)).await?;
        Ok(found.map(|(_, hold)| hold))
    }

    async fn open_holds(&self, account: &AccountId, limit: u32) -> Result<Vec<Hold>> {
        let account = account.clone();
        self.read(move |snapshot| holds::newest_open(snapshot, &account, limit)).await
    }

    async fn expired_holds(&self, now: Timestamp, limit: u32) -> Result<Vec<Hold>> {
        self.read(move |snapshot| holds::expired(snapshot, now, limit)).await
    }
}
