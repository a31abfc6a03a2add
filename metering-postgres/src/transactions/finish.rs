//! Ends a transaction with a commit or a rollback.

use metering_core::Timestamp;

use crate::connection::session::{Client, GenericClient};
use crate::connection::wait::{RESPONSE_TIMEOUT, within};
use crate::error::Result;
use crate::store::PostgresStore;
use crate::transactions::outcome::{TransactionFailure, TransactionId};

impl PostgresStore {
    /// Finishes a transaction and its connection. If the outcome is unknown, looks it up.
    pub(crate) async fn end<T>(
        &self,
        client: Client,
        id: TransactionId,
        now: Timestamp,
        ended: Result<T, TransactionFailure<T>>,
    ) -> Result<T> {
        let (failure, result) = match ended {
            Ok(result) => return Ok(result),
            Err(TransactionFailure::NotCommitted(failure)) => (failure, None),
            Err(TransactionFailure::Unknown { failure, result }) => (failure, Some(result)),
        };
        if failure.is_connection_loss() {
            // Cached data may be missing on the new primary if a failover lost the newest commits.
            self.known.forget();
        }
        if failure.is_host_failure() {
            self.pool.close(client);
        } else if result.is_some() || !rolled_back(&client).await {
            client.close();
        }
        match result {
            Some(result) if id.was_committed(&self.pool, now).await? => Ok(result),
            _ => Err(failure),
        }
    }
}

async fn rolled_back(client: &Client) -> bool {
    within(RESPONSE_TIMEOUT, async { Ok(client.batch_execute("ROLLBACK").await?) }).await.is_ok()
}
