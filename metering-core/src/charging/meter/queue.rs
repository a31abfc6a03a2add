//! The sending side of a meter's queue: for the meter itself, for guards of holds, and for the task that keeps them.

use std::fmt;
use std::sync::{Arc, Weak};

use tokio::sync::TryAcquireError;

use super::MeterError;
use super::postings::{Postings, Request};
use super::reply::{Reply, ReplySender, slot};
use super::waiting::Waiting;
use super::wakes::{Told, tell_when_turn_ends};
use crate::charging::posting::{Outcome, Posting};
use crate::store::Store;

/// The sending end of a meter's queue. When the last one is dropped, the meter ends.
#[derive(Clone)]
pub(super) struct Queue(Arc<Sender>);

/// A queue that does not keep its meter alive.
#[derive(Clone)]
pub(super) struct WeakQueue(Weak<Sender>);

struct Sender {
    postings: Arc<Postings>,
    store: Arc<dyn Store>,
}

impl Queue {
    pub(super) fn new(postings: Arc<Postings>, store: Arc<dyn Store>) -> Self {
        Self(Arc::new(Sender { postings, store }))
    }

    pub(super) fn downgrade(&self) -> WeakQueue {
        WeakQueue(Arc::downgrade(&self.0))
    }

    pub(super) fn available(&self) -> usize {
        self.0.postings.permits.available_permits()
    }

    /// Takes nothing more.
    pub(super) fn close(&self) {
        self.0.close();
    }

    /// Queues a posting, if the queue has room. Its caller waits at `slot`.
    ///
    /// # Errors
    /// [`MeterError::Overloaded`] when it has none.
    pub(super) fn try_post(&self, posting: Posting, slot: (ReplySender, Reply)) -> Result<Reply, MeterError> {
        match self.0.postings.permits.try_acquire() {
            Ok(permit) => permit.forget(),
            Err(TryAcquireError::NoPermits) => return Err(MeterError::Overloaded),
            Err(TryAcquireError::Closed) => return Err(MeterError::Closed),
        }
        self.enqueue(posting, true, slot)
    }

    /// Queues a mandatory posting: waits while the queue is full.
    pub(super) async fn post(&self, posting: Posting) -> Result<Reply, MeterError> {
        self.0.postings.permits.acquire().await.map_err(|_| MeterError::Closed)?.forget();
        self.enqueue(posting, true, slot())
    }

    /// Queues a mandatory posting, and waits for its outcome.
    pub(super) async fn record(&self, posting: Posting) -> Result<Outcome, MeterError> {
        self.post(posting).await?.outcome().await
    }

    /// Queues a mandatory posting, without waiting and although the queue may be full.
    pub(super) fn post_now(&self, posting: Posting) -> Result<Reply, MeterError> {
        self.enqueue(posting, false, slot())
    }

    fn enqueue(
        &self,
        posting: Posting,
        has_permit: bool,
        (reply, outcome): (ReplySender, Reply),
    ) -> Result<Reply, MeterError> {
        let request = Request { posting, reply, has_permit, waiting: Waiting::start() };
        if self.0.postings.push(request).ok_or(MeterError::Closed)? {
            tell_when_turn_ends(&self.0);
        }
        Ok(outcome)
    }
}

impl WeakQueue {
    /// The queue; `None` when its meter was dropped.
    pub(super) fn upgrade(&self) -> Option<Queue> {
        self.0.upgrade().map(Queue)
    }
}

impl Sender {
    fn close(&self) {
        self.postings.close();
        // The thread that was to notify the committer may no longer run.
        self.tell();
    }
}

impl Told for Sender {
    fn tell(&self) {
        self.postings.tell(&*self.store);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("available", &self.available()).finish_non_exhaustive()
    }
}
