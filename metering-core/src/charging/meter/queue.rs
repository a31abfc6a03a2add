//! The way into the queue of a meter: from the meter itself, from guards of holds, and from the task that keeps them.

use std::sync::Arc;

use tokio::sync::{Semaphore, TryAcquireError, mpsc, oneshot};

use super::MeterError;
use super::waiting::Waiting;
use crate::charging::posting::{Outcome, Posting};
use crate::store::StoreError;

/// A posting and the channel for its outcome.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) posting: Posting,
    pub(super) reply: oneshot::Sender<Result<Outcome, MeterError>>,
    /// Whether it took one of the queue's permits, which is returned when its commit begins.
    pub(super) has_permit: bool,
    pub(super) waiting: Waiting,
}

/// The sending end of a meter's queue.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    sender: mpsc::UnboundedSender<Request>,
    /// One permit per request that may wait. A request returns its permit when its commit begins.
    permits: Arc<Semaphore>,
}

/// A queue that does not keep its meter alive.
#[derive(Debug, Clone)]
pub(super) struct WeakQueue {
    sender: mpsc::WeakUnboundedSender<Request>,
    permits: Arc<Semaphore>,
}

/// The outcome that will come.
pub(super) struct Reply(oneshot::Receiver<Result<Outcome, MeterError>>);

impl Queue {
    pub(super) fn new(sender: mpsc::UnboundedSender<Request>, permits: Arc<Semaphore>) -> Self {
        Self { sender, permits }
    }

    pub(super) fn downgrade(&self) -> WeakQueue {
        WeakQueue { sender: self.sender.downgrade(), permits: Arc::clone(&self.permits) }
    }

    pub(super) fn available(&self) -> usize {
        self.permits.available_permits()
    }

    /// Queues a posting, if the queue has room.
    ///
    /// # Errors
    /// [`MeterError::Overloaded`] when it has none.
    pub(super) fn try_post(&self, posting: Posting) -> Result<Reply, MeterError> {
        match self.permits.try_acquire() {
            Ok(permit) => permit.forget(),
            Err(TryAcquireError::NoPermits) => return Err(MeterError::Overloaded),
            Err(TryAcquireError::Closed) => return Err(MeterError::Closed),
        }
        self.enqueue(posting, true)
    }

    /// Queues a posting that is owed: waits while the queue is full.
    pub(super) async fn post(&self, posting: Posting) -> Result<Reply, MeterError> {
        self.permits.acquire().await.map_err(|_| MeterError::Closed)?.forget();
        self.enqueue(posting, true)
    }

    /// Queues a posting that is owed, and waits for its outcome.
    pub(super) async fn record(&self, posting: Posting) -> Result<Outcome, MeterError> {
        self.post(posting).await?.outcome().await
    }

    /// Queues a posting that is owed, without waiting and although the queue may be full.
    pub(super) fn post_now(&self, posting: Posting) -> Result<Reply, MeterError> {
        self.enqueue(posting, false)
    }

    fn enqueue(&self, posting: Posting, has_permit: bool) -> Result<Reply, MeterError> {
        let (reply, outcome) = oneshot::channel();
        self.sender.send(Request { posting, reply, has_permit, waiting: Waiting::start() }).map_err(|_| {
            self.permits.add_permits(usize::from(has_permit));
            MeterError::Closed
        })?;
        Ok(Reply(outcome))
    }
}

impl WeakQueue {
    /// The queue; `None` when its meter was dropped.
    pub(super) fn upgrade(&self) -> Option<Queue> {
        Some(Queue { sender: self.sender.upgrade()?, permits: Arc::clone(&self.permits) })
    }
}

impl Reply {
    /// Waits for the outcome.
    ///
    /// # Errors
    /// When the posting was not recorded, or that is not known.
    pub(super) async fn outcome(self) -> Result<Outcome, MeterError> {
        // Without a reply, the commit ended without a result, for example because it panicked.
        let no_result = |_| store_error(StoreError::OutcomeUnknown("the commit ended without a result".to_owned()));
        match self.0.await.map_err(no_result)?? {
            Outcome::Failed(reason) => Err(store_error(StoreError::Unavailable(reason.into()))),
            outcome => Ok(outcome),
        }
    }
}

fn store_error(error: StoreError) -> MeterError {
    MeterError::Store(Arc::new(error))
}
