//! Implements the part of the storage contract for price versions. Each method runs in a transaction.

use std::sync::Arc;

use async_trait::async_trait;
use metering_core::prices::{NewPriceVersion, PriceHistory, PriceNumber, PriceRecorded, PriceVersion};
use metering_core::store::PriceStore;
use metering_core::{StoreError, Timestamp};

use crate::operators::prices;
use crate::store::PostgresStore;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl PriceStore for PostgresStore {
    async fn record_prices(&self, new: NewPriceVersion) -> Result<PriceRecorded> {
        self.write(|write| Box::pin(prices::record(write, new.clone()))).await
    }

    async fn price_versions(&self, from: Timestamp) -> Result<PriceHistory> {
        self.read(move |client| Box::pin(prices::history(client, from))).await
    }

    async fn price_catalogue(&self, number: PriceNumber) -> Result<Option<Arc<str>>> {
        self.read(move |client| Box::pin(prices::catalogue(client, number))).await
    }

    async fn cancel_prices(&self, number: PriceNumber, now: Timestamp) -> Result<Option<PriceVersion>> {
        self.write(move |write| Box::pin(prices::cancel(write, number, now))).await
    }
}
