//! Who moves a store here: one at a time.
//!
//! A row stays locked on a connection of its own for as long as the move goes on, so that a second one is turned away,
//! and a move whose process died is over at once: its connection is closed, and the lock gone with it. Nothing rests on
//! the lock alone. If it is lost while its holder lives, the next move writes its own name into `turn`, and no batch of
//! the first is written after that.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metering_core::StoreError;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;

use crate::error::{Failure, Result};
use crate::outcome::TransactionId;
use crate::session::{GenericClient, Pool};

/// How often the connection is used, so that it does not count as one that was left in the middle of a transaction.
const PING: Duration = Duration::from_secs(3);

/// How long giving the lock back may take before its connection is dropped instead.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

const LOCK: &str = "SELECT id FROM import_lock WHERE id = 1 FOR UPDATE NOWAIT";

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

    /// Gives the lock back, now that the store is everybody's.
    pub(super) async fn give_back(&self) {
        let holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((mut holder, stop)) = holder {
            // Gone already is as good.
            let _ = stop.send(());
            if tokio::time::timeout(RELEASE_TIMEOUT, &mut holder).await.is_err() {
                holder.abort();
            }
        }
    }

    /// Locks the row, until the claim is dropped or released; `false` when somebody else has.
    pub(super) async fn take(&self, pool: &Pool) -> Result<bool, StoreError> {
        // The database notices a connection that is merely dropped a moment later, and would say that the lock is held.
        self.give_back().await;
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
            tracing::warn!("the connection that keeps other moves away was lost");
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

/// Whether somebody moves a store here at this moment.
pub(super) async fn is_held(pool: &Pool) -> Result<bool, StoreError> {
    let client = pool.get().await.map_err(Failure::from)?;
    let answer = client.batch_execute(&format!("{}; {LOCK}", client.begin())).await;
    client.batch_execute("ROLLBACK").await.map_err(Failure::from)?;
    match answer {
        Ok(()) => Ok(false),
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(true),
        Err(error) => Err(Failure::from(error).into()),
    }
}
