//! The storage contract for accounts, charges and usage. Each method runs in a transaction.

use std::num::NonZeroUsize;

use metering_core::StoreError;

use crate::charging::known::SharedKnown;
use crate::store::{PostgresStore, check};
use crate::usage::activity;

/// Concurrent commits. While one waits for the disk, others are decided. More than a few would only make batches
/// smaller.
const LANES: NonZeroUsize = NonZeroUsize::new(4).expect("not zero");

metering_sql::store! {
    PostgresStore {
        async fn commit(&self, postings: Vec<Posting>, now: Timestamp) -> Result<Vec<Outcome>> {
            // In a separate task: a cancelled caller must not leave an unfinished transaction on a connection.
            let store = self.clone();
            let committed = tokio::spawn(async move { store.commit_batch(&postings, now).await }).await;
            committed.unwrap_or_else(|error| Err(StoreError::Broken(format!("a commit was aborted: {error}"))))
        }

        async fn activity(&self, id: &AccountId, limit: u32) -> Result<Vec<Activity>> {
            self.read_at_once(|transaction| {
                let (id, known) = (id.clone(), SharedKnown::clone(&self.known));
                Box::pin(async move { activity::newest(transaction, &known, &id, limit).await })
            })
            .await
        }

        async fn verify(&self) -> Result<Verification> {
            metering_sql::snapshot(self, (), |db, ()| metering_sql::shared(metering_sql::verify::verify(db))).await
        }

        async fn forget_expired(&self, now: Timestamp) -> Result<u64> {
            let forgotten = metering_sql::expiry::forget(self, now).await?;
            self.forget_outcomes().await?;
            Ok(forgotten)
        }

        async fn check(&self) -> Result<()> {
            // In a separate task, like a commit: the caller may be cancelled.
            let store = self.clone();
            let checked = tokio::spawn(async move { store.read(|client| Box::pin(check::check(client))).await }).await;
            checked.unwrap_or_else(|error| Err(StoreError::Unavailable(Box::new(error))))
        }

        async fn clock(&self) -> Result<Option<Timestamp>> {
            self.read(|client| Box::pin(check::clock(client))).await.map(Some)
        }

        fn commit_lanes(&self) -> NonZeroUsize {
            LANES
        }
    }
}
