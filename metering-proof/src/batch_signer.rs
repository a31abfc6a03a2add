//! Signs receipts in batches, one signature for all that wait: one for each response would cost a busy service much of its
//! throughput. Whoever waits for a receipt signs for the others too, so that no other thread has to be woken.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use metering_core::receipts::{ReceiptError, ReceiptSigner, Statement};
use metering_core::store::KeyStore;
use metering_core::{Clock, Randomness};
use metering_log::keys::PrivateKey;
use metering_log::tree::TreeHash;
use tokio::sync::{oneshot, watch};
use tokio::task::yield_now;

use crate::batch::SignedBatch;
use crate::key_ids::KeyIds;
use crate::payload::ReceiptPayload;

/// The maximum number of receipts per signature: their hashes take a fraction of a millisecond.
const MAX_BATCH: usize = 512;

/// A [`ReceiptSigner`] with a key in memory.
pub struct BatchSigner {
    queue: Arc<Queue>,
    key_ids: KeyIds,
    log: watch::Receiver<Option<String>>,
    randomness: Arc<dyn Randomness>,
}

/// The receipts that wait, and what signs them.
struct Queue {
    waiting: Mutex<Vec<Waiting>>,
    /// Locked while signing.
    key: tokio::sync::Mutex<PrivateKey>,
    issuer: String,
    clock: Arc<dyn Clock>,
}

/// A receipt waiting for a signature.
struct Waiting {
    leaf: TreeHash,
    /// The batch, and the receipt's place in it.
    reply: oneshot::Sender<(Arc<SignedBatch>, usize)>,
}

impl BatchSigner {
    /// Receipts are of `issuer`, the public URL of the service, and signed with `key`. Key ids are read from `keys`, once
    /// each. While `log` contains a log's origin, receipts promise that their postings will be in that log.
    pub fn new(
        key: PrivateKey,
        issuer: String,
        log: watch::Receiver<Option<String>>,
        keys: Arc<dyn KeyStore>,
        randomness: Arc<dyn Randomness>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let queue = Queue { waiting: Mutex::default(), key: tokio::sync::Mutex::new(key), issuer, clock };
        Self { queue: Arc::new(queue), key_ids: KeyIds::new(keys), log, randomness }
    }
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signs one batch, unless another caller is signing. Returns true if receipts still wait afterwards: those that came
    /// meanwhile could not be signed by their own callers, so this one must call it again.
    fn sign(&self) -> bool {
        let Ok(key) = self.key.try_lock() else { return false };
        let mut batch: Vec<Waiting> = {
            let mut waiting = self.waiting();
            let count = waiting.len().min(MAX_BATCH);
            waiting.drain(..count).collect()
        };
        // Some clients may have disconnected.
        batch.retain(|receipt| !receipt.reply.is_closed());
        if !batch.is_empty() {
            self.sign_batch(batch, &key);
        }
        drop(key);
        !self.waiting().is_empty()
    }

    fn sign_batch(&self, waiting: Vec<Waiting>, key: &PrivateKey) {
        let leaves = waiting.iter().map(|receipt| receipt.leaf).collect();
        // Without a batch, the replies are dropped, and callers see that nothing was signed.
        let Ok(batch) = SignedBatch::sign(leaves, self.issuer.clone(), self.clock.now(), key) else { return };
        let batch = Arc::new(batch);
        for (place, receipt) in waiting.into_iter().enumerate() {
            // The caller may have been dropped.
            let _ = receipt.reply.send((Arc::clone(&batch), place));
        }
    }
}

#[async_trait]
impl ReceiptSigner for BatchSigner {
    async fn sign(&self, statement: Statement) -> Result<String, ReceiptError> {
        let key = self.key_ids.get(&statement.account, statement.key).await?;
        let log = self.log.borrow().clone();
        let queue = &self.queue;
        let payload = ReceiptPayload::new(statement, key, queue.issuer.clone(), log, &*self.randomness);
        let payload = serde_json::to_vec(&payload).map_err(|error| ReceiptError::Invalid(error.to_string()))?;
        let (reply, mut signed) = oneshot::channel();
        queue.waiting().push(Waiting { leaf: TreeHash::leaf(&payload), reply });
        // The responses to one commit come together, and share a signature.
        yield_now().await;
        let (batch, place) = if let Ok(signed) = signed.try_recv() {
            signed
        } else {
            if queue.sign() {
                // In a task of its own: this response does not wait for the others, and its client may disconnect.
                let queue = Arc::clone(queue);
                tokio::spawn(async move {
                    while queue.sign() {
                        yield_now().await;
                    }
                });
            }
            signed.await.map_err(|_| ReceiptError::Invalid("its batch cannot be written".to_owned()))?
        };
        Ok(batch.receipt(payload, place).to_string())
    }
}

impl fmt::Debug for BatchSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchSigner").field("issuer", &self.queue.issuer).finish_non_exhaustive()
    }
}
