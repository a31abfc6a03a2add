//! Implements the part of the storage contract for recurring credits.

use async_trait::async_trait;
use metering_core::Timestamp;
use metering_core::money::Refill;
use metering_core::store::{RefillStore, Refilled};

use crate::error::Result;
use crate::journal::Snapshot;
use crate::money::refills;
use crate::store::SqliteStore;

#[async_trait]
impl RefillStore for SqliteStore {
    async fn refill(&self) -> Result<Option<Refill>> {
        Ok(self.read(|connection| refills::rule(connection)).await?.map(|(refill, _)| refill))
    }

    async fn set_refill(&self, refill: Option<Refill>) -> Result<()> {
        self.writer.write(move |connection: &Snapshot<'_>| refills::set(connection, refill)).await
    }

    async fn refill_accounts(&self, now: Timestamp, limit: u32) -> Result<Refilled> {
        if !self.read(move |connection| refills::is_open(connection, now)).await? {
            return Ok(Refilled::NOTHING);
        }
        self.writer.write(move |connection: &Snapshot<'_>| refills::refill_accounts(connection, now, limit)).await
    }
}
