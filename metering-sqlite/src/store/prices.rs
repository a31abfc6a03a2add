//! Implements the part of the storage contract for price versions. Each method goes to the writer or to a reader.

use std::sync::Arc;

use async_trait::async_trait;
use metering_core::Timestamp;
use metering_core::prices::{NewPriceVersion, PriceHistory, PriceNumber, PriceRecorded, PriceVersion};
use metering_core::store::PriceStore;

use crate::error::Result;
use crate::journal::Snapshot;
use crate::operators::prices;
use crate::store::SqliteStore;

#[async_trait]
impl PriceStore for SqliteStore {
    async fn record_prices(&self, new: NewPriceVersion) -> Result<PriceRecorded> {
        self.writer.write(move |connection: &Snapshot<'_>| prices::record(connection, &new)).await
    }

    async fn price_versions(&self, from: Timestamp) -> Result<PriceHistory> {
        self.read(move |connection| prices::history(connection, from)).await
    }

    async fn price_catalogue(&self, number: PriceNumber) -> Result<Option<Arc<str>>> {
        self.read(move |connection| prices::catalogue(connection, number)).await
    }

    async fn cancel_prices(&self, number: PriceNumber, now: Timestamp) -> Result<Option<PriceVersion>> {
        self.writer.write(move |connection: &Snapshot<'_>| prices::cancel(connection, number, now)).await
    }
}
