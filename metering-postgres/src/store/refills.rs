//! Implements the part of the storage contract for recurring credits.

use async_trait::async_trait;
use metering_core::money::Refill;
use metering_core::store::{RefillStore, Refilled};
use metering_core::{StoreError, Timestamp};

use crate::money::refills;
use crate::store::PostgresStore;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl RefillStore for PostgresStore {
    async fn refill(&self) -> Result<Option<Refill>> {
        let found = self.read(|client| Box::pin(refills::rule(client))).await?;
        Ok(found.map(|(refill, _)| refill))
    }

    async fn set_refill(&self, refill: Option<Refill>) -> Result<()> {
        self.write(move |write| Box::pin(refills::set(write, refill))).await
    }

    async fn refill_accounts(&self, now: Timestamp, limit: u32) -> Result<Refilled> {
        if !self.read(move |client| Box::pin(refills::is_open(client, now))).await? {
            return Ok(Refilled::NOTHING);
        }
        self.write(move |write| Box::pin(refills::refill_accounts(write, now, limit))).await
    }
}
