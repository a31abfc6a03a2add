//! Signs receipts in batches: one signature for all waiting receipts, and a few per millisecond at most. A signature for
//! each response would cost a busy service much of its throughput.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use metering_core::receipts::{ReceiptError, ReceiptSigner, Statement};
use metering_core::store::KeyStore;
use metering_core::{Clock, Randomness};
use metering_log::keys::PrivateKey;
use metering_log::tree::TreeHash;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::batch::SignedBatch;
use crate::key_ids::KeyIds;
use crate::payload::ReceiptPayload;

/// How many receipts may wait. Beyond that, receipts are refused, so that a flood of them does not delay responses for
/// long.
const MAX_WAITING: usize = 8_192;
/// The maximum number of receipts per signature.
const MAX_BATCH: usize = 4_096;
/// How long a window is. Timers have no shorter one.
const WINDOW: Duration = Duration::from_millis(1);
/// How many signatures a window may have: they take about a tenth of one processor. With few clients no receipt waits.
const SIGNATURES_PER_WINDOW: u32 = 4;

/// A [`ReceiptSigner`] with a key in memory. Payloads and their hashes are made by the callers; the task that
/// [`BatchSigner::start`] returns makes trees and signatures.
pub struct BatchSigner {
    queue: mpsc::Sender<Waiting>,
    key_ids: KeyIds,
    issuer: String,
    randomness: Arc<dyn Randomness>,
    log: watch::Receiver<Option<String>>,
}

/// A receipt waiting for a signature.
struct Waiting {
    leaf: TreeHash,
    /// The batch, and the receipt's place in it.
    reply: oneshot::Sender<(Arc<SignedBatch>, usize)>,
}

impl BatchSigner {
    /// A signer, and its task, which the caller runs: it ends when the signer is dropped. Receipts are of `issuer`, the
    /// public URL of the service, and signed with `key`. Key ids are read from `keys`, once each. While `log` contains
    /// a log's origin, receipts promise that their postings will be in that log.
    pub fn start(
        key: PrivateKey,
        issuer: String,
        log: watch::Receiver<Option<String>>,
        keys: Arc<dyn KeyStore>,
        randomness: Arc<dyn Randomness>,
        clock: Arc<dyn Clock>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, waiting) = mpsc::channel(MAX_WAITING);
        let task = Task { queue: waiting, key, issuer: issuer.clone(), clock };
        (Self { queue, key_ids: KeyIds::new(keys), issuer, randomness, log }, task.run())
    }
}

#[async_trait]
impl ReceiptSigner for BatchSigner {
    async fn sign(&self, statement: Statement) -> Result<String, ReceiptError> {
        let key = self.key_ids.get(&statement.account, statement.key).await?;
        let log = self.log.borrow().clone();
        let payload = ReceiptPayload::new(statement, key, self.issuer.clone(), log, &*self.randomness);
        let payload = serde_json::to_vec(&payload).map_err(|error| ReceiptError::Invalid(error.to_string()))?;
        let (reply, signed) = oneshot::channel();
        let waiting = Waiting { leaf: TreeHash::leaf(&payload), reply };
        self.queue.try_send(waiting).map_err(|error| match error {
            TrySendError::Full(_) => ReceiptError::Overloaded,
            TrySendError::Closed(_) => ReceiptError::Stopped,
        })?;
        let (batch, place) = signed.await.map_err(|_| ReceiptError::Stopped)?;
        Ok(batch.receipt(payload, place).to_string())
    }
}

impl fmt::Debug for BatchSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchSigner").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// The part of the signer that has the key.
struct Task {
    queue: mpsc::Receiver<Waiting>,
    key: PrivateKey,
    issuer: String,
    clock: Arc<dyn Clock>,
}

impl Task {
    async fn run(mut self) {
        let mut waiting = Vec::new();
        let (mut window, mut signatures) = (Instant::now(), 0);
        while self.queue.recv_many(&mut waiting, MAX_BATCH).await > 0 {
            if signatures == SIGNATURES_PER_WINDOW {
                sleep_until(window + WINDOW).await;
            } else {
                // The responses to one commit come together.
                yield_now().await;
            }
            while waiting.len() < MAX_BATCH
                && let Ok(more) = self.queue.try_recv()
            {
                waiting.push(more);
            }
            // Some clients may have disconnected.
            waiting.retain(|receipt| !receipt.reply.is_closed());
            if !waiting.is_empty() {
                if window.elapsed() >= WINDOW {
                    (window, signatures) = (Instant::now(), 0);
                }
                self.sign(std::mem::take(&mut waiting));
                signatures += 1;
            }
        }
    }

    fn sign(&self, waiting: Vec<Waiting>) {
        let leaves = waiting.iter().map(|receipt| receipt.leaf).collect();
        // Without a batch, the replies are dropped, and callers see that nothing was signed.
        let Ok(batch) = SignedBatch::sign(leaves, self.issuer.clone(), self.clock.now(), &self.key) else { return };
        let batch = Arc::new(batch);
        for (place, receipt) in waiting.into_iter().enumerate() {
            // The caller may have been dropped.
            let _ = receipt.reply.send((Arc::clone(&batch), place));
        }
    }
}
