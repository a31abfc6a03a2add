//! Ensures that only one process at a time moves a store here.
//!
//! A dedicated connection keeps a row locked for as long as the move runs, so a second move is refused. If the process
//! dies, its connection closes and releases the lock. Correctness does not depend on the lock alone: if the lock is
//! lost while its holder lives, the next move writes its own name into `turn`, and no later batch of the first is
//! written.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metering_core::StoreError;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;

use crate::connection::session::{GenericClient, Pool};
use crate::error::{Failure, Result};
use crate::transactions::outcome::TransactionId;

/// How often to use the connection, so that `idle_in_transaction_session_timeout` does not end it.
const PING: Duration = Duration::from_secs(3);

/// How long giving the lock back may take before its connection is dropped instead.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// Waits a little: a database notices only after a moment that the process of an earlier move has ended.
const LOCK: &str = "SET LOCAL lock_timeout = '2s'; SELECT id FROM import_lock WHERE id = 1 FOR UPDATE";

/// The name of a move, and the task that holds its lock.
pub(crate) struct Claim {
    owner: [u8; 16],
    holder: Mutex<Option<(JoinHandle<()>, oneshot::Sender<()>)>>,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claim")
    }
}

impl Claim {
    pub(super) fn draw() -> Result<Self, StoreError> {
        Ok(Self { owner: *TransactionId::draw()?.array(), holder: Mutex::new(None) })
    }

    pub(crate) fn owner(&self) -> [u8; 16] {
        self.owner
    }

    /// Releases the lock, if this claim holds it.
    pub(super) async fn release(&self) {
        let holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((mut holder, stop)) = holder {
            // If the task has already ended, the lock is released too.
            let _ = stop.send(());
            if tokio::time::timeout(RELEASE_TIMEOUT, &mut holder).await.is_err() {
                holder.abort();
            }
        }
    }

    /// Locks the row until the claim is dropped or released; `false` if another process holds the lock.
    pub(super) async fn take(&self, pool: &Pool) -> Result<bool, StoreError> {
        // The database notices a merely dropped connection a moment later, and would report until then that the lock is
        // held.
        self.release().await;
        let client = pool.get().await.map_err(Failure::from)?;
        let lock = format!("{}; {LOCK}", client.begin());
        let client = client.leave_pool();
        match client.batch_execute(&lock).await {
            Ok(()) => {}
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => return Ok(false),
            Err(error) => return Err(Failure::from(error).into()),
        }
        let (stop, mut stopped) = oneshot::channel();
        let holder = tokio::spawn(async move {
            while client.batch_execute("SELECT 1").await.is_ok() {
                tokio::select! {
                    _ = &mut stopped => {
                        let _ = client.batch_execute("ROLLBACK").await;
                        return;
                    }
                    () = tokio::time::sleep(PING) => {}
                }
            }
            tracing::warn!("lost the connection that locks out other moves");
        });
        *self.holder.lock().unwrap_or_else(PoisonError::into_inner) = Some((holder, stop));
        Ok(true)
    }

    fn drop_lock(&self) {
        if let Some((holder, _)) = self.holder.lock().unwrap_or_else(PoisonError::into_inner).take() {
            holder.abort();
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.drop_lock();
    }
}

/// Whether a move to this database is running.
pub(super) async fn is_held(pool: &Pool) -> Result<bool, StoreError> {
    let client = pool.get().await.map_err(Failure::from)?;
    let result = client.batch_execute(&format!("{}; {LOCK}", client.begin())).await;
    client.batch_execute("ROLLBACK").await.map_err(Failure::from)?;
    match result {
        Ok(()) => Ok(false),
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(true),
        Err(error) => Err(Failure::from(error).into()),
    }
}
