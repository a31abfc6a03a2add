//! The group commit task: batches queued postings, commits each batch, and replies to every caller.
//!
//! If a commit is slow, charges queued behind it in its lanes are rejected instead of waiting. Nothing is written for a
//! rejected charge, so its caller may retry.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinError, JoinSet, yield_now};
use tokio::time::sleep_until;

use super::lanes::{Batch, Lanes};
use super::queue::{Request, WeakQueue};
use super::{MeterEnd, MeterError, MeterStats};
use crate::charging::charge::Decision;
use crate::charging::hold::HoldAction;
use crate::charging::posting::{Outcome, Posting};
use crate::clock::Clock;
use crate::store::{Store, StoreError};

/// How many requests to receive at once; receiving many costs little more than receiving one.
const RECEIVED_AT_ONCE: usize = 1_024;

/// A commit that takes longer than this counts as slow. A healthy store commits in milliseconds.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Committer {
    context: CommitContext,
    permits: Arc<Semaphore>,
    lanes: Lanes<Request>,
    max_batch: usize,
    /// Running commits that are not slow yet, oldest first: when each becomes slow, and its lanes.
    expected: VecDeque<(tokio::time::Instant, Vec<usize>)>,
}

/// What a commit needs.
#[derive(Clone)]
pub(super) struct CommitContext {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) stats: Arc<MeterStats>,
    pub(super) queue: WeakQueue,
}

/// What wakes the task.
enum Event {
    CommitFinished(Result<FinishedCommit, JoinError>),
    CommitTimedOut,
    RequestsReceived,
}

/// A finished commit: the lanes to free, and whether the store is broken.
struct FinishedCommit {
    lanes: Vec<usize>,
    broken: bool,
}

impl Committer {
    pub(super) fn new(context: CommitContext, permits: Arc<Semaphore>, max_batch: NonZeroUsize) -> Self {
        let lanes = Lanes::new(context.store.commit_lanes().get());
        Self { context, permits, lanes, max_batch: max_batch.get(), expected: VecDeque::new() }
    }

    /// Commits until the meter is drained or dropped and nothing is waiting, or until the store breaks.
    pub(super) async fn run(
        mut self,
        mut inbox: mpsc::UnboundedReceiver<Request>,
        mut drain: watch::Receiver<bool>,
    ) -> MeterEnd {
        let (mut received, mut commits) = (Vec::new(), JoinSet::new());
        let mut open = true;
        loop {
            let slow_at = self.expected.front().map(|(at, _)| *at);
            let event = tokio::select! {
                // Finished commits first: that frees their lanes for the requests received next.
                biased;
                Some(ended) = commits.join_next() => Event::CommitFinished(ended),
                count = inbox.recv_many(&mut received, RECEIVED_AT_ONCE), if open => {
                    open = count > 0;
                    Event::RequestsReceived
                }
                // Requests already queued are still received. An error means that the meter was dropped, which also
                // closes the inbox.
                Ok(_) = drain.wait_for(|draining| *draining), if !inbox.is_closed() => {
                    inbox.close();
                    Event::RequestsReceived
                }
                () = sleep_until(slow_at.unwrap_or_else(tokio::time::Instant::now)), if slow_at.is_some() => {
                    Event::CommitTimedOut
                }
                else => return MeterEnd::Drained,
            };
            match event {
                Event::RequestsReceived => {}
                Event::CommitTimedOut => self.mark_slow(),
                Event::CommitFinished(Ok(FinishedCommit { lanes, broken: false })) => {
                    self.expected.retain(|(_, expected)| *expected != lanes);
                    self.lanes.free(&lanes);
                }
                // A commit that panicked or was cancelled has an unknown outcome, as with a broken store.
                Event::CommitFinished(Ok(FinishedCommit { broken: true, .. }) | Err(_)) => {
                    received.drain(..).for_each(|request| self.assign_lane(request));
                    return self.broken(inbox, commits).await;
                }
            }
            // Requests that have arrived join this commit instead of waiting for the next one.
            yield_now().await;
            while let Ok(request) = inbox.try_recv() {
                received.push(request);
            }
            received.drain(..).for_each(|request| self.assign_lane(request));
            self.reject_behind_slow_commits();
            while let Some(batch) = self.lanes.take(self.max_batch) {
                self.permits.add_permits(batch.items.iter().filter(|request| request.has_permit).count());
                self.expected.push_back((tokio::time::Instant::now() + COMMIT_TIMEOUT, batch.lanes.clone()));
                commits.spawn(self.context.clone().commit(batch));
            }
        }
    }

    fn mark_slow(&mut self) {
        if let Some((_, lanes)) = self.expected.pop_front() {
            tracing::warn!("a commit is slow; rejecting charges that would wait for it");
            self.lanes.mark_slow(&lanes);
        }
    }

    /// Rejects charges that would wait for a slow commit. Refunds are owed, so they wait.
    fn reject_behind_slow_commits(&mut self) {
        let refused = self.lanes.remove_waiting(|request| matches!(request.posting, Posting::Charge(_)));
        if refused.is_empty() {
            return;
        }
        self.permits.add_permits(refused.len());
        let error = Arc::new(StoreError::Unavailable("an earlier commit takes too long".into()));
        for request in refused {
            let _ = request.reply.send(Err(MeterError::Store(Arc::clone(&error))));
        }
    }

    /// Puts a request into its lane. Charges go by secret, so those of one key share a lane. Other keys of the account,
    /// and refunds, may be in other lanes; the store serialises them.
    fn assign_lane(&mut self, request: Request) {
        match &request.posting {
            Posting::Charge(charge) => {
                let key = charge.key;
                self.lanes.push(key.as_bytes(), request);
            }
            Posting::Refund(refund) => {
                let account = refund.account.clone();
                self.lanes.push(account.as_str().as_bytes(), request);
            }
            Posting::Hold(update) => {
                let account = update.account.clone();
                self.lanes.push(account.as_str().as_bytes(), request);
            }
            Posting::Settle(settlement) => {
                let account = settlement.account.clone();
                self.lanes.push(account.as_str().as_bytes(), request);
            }
        }
    }

    /// Stops accepting requests, rejects those whose commit has not begun (nothing was charged for them), and waits for
    /// running commits to finish.
    async fn broken(
        &mut self,
        mut inbox: mpsc::UnboundedReceiver<Request>,
        mut commits: JoinSet<FinishedCommit>,
    ) -> MeterEnd {
        inbox.close();
        self.permits.close();
        while let Ok(request) = inbox.try_recv() {
            self.assign_lane(request);
        }
        for request in self.lanes.take_all() {
            let _ = request.reply.send(Err(MeterError::Closed));
        }
        while commits.join_next().await.is_some() {}
        MeterEnd::StoreBroken
    }
}

impl CommitContext {
    /// Releases a hold whose caller has gone: the request will not be served. A charge stays recorded.
    fn release_unclaimed(&self, outcome: &Outcome) {
        let Outcome::Decided(Decision::Accepted(receipt)) = outcome else { return };
        let release = receipt.hold_update(HoldAction::Release).filter(|_| !receipt.repeated);
        if let Some((release, queue)) = release.zip(self.queue.upgrade()) {
            drop(queue.post_now(Posting::Hold(release)));
        }
    }

    /// Commits a batch and replies to its callers. Waking all callers from this one task keeps that cheap.
    async fn commit(self, batch: Batch<Request>) -> FinishedCommit {
        let Batch { items, lanes } = batch;
        let size = items.len();
        let (mut postings, mut replies, mut spans) = (Vec::with_capacity(size), Vec::with_capacity(size), Vec::new());
        for Request { posting, reply, waiting, .. } in items {
            postings.push(posting);
            replies.push(reply);
            spans.extend(waiting.commit(size));
        }
        let started_at = Instant::now();
        let outcomes = self.store.commit(postings, self.clock.now()).await;
        self.stats.count_commit(replies.len(), started_at.elapsed());
        drop(spans);
        match outcomes {
            Ok(outcomes) => {
                assert_eq!(outcomes.len(), replies.len(), "a store returns one outcome per posting");
                self.stats.count_success(&outcomes);
                for (outcome, reply) in outcomes.into_iter().zip(replies) {
                    self.stats.count_outcome(&outcome);
                    if let Err(Ok(outcome)) = reply.send(Ok(outcome)) {
                        self.release_unclaimed(&outcome);
                    }
                }
                FinishedCommit { lanes, broken: false }
            }
            Err(error) => {
                let broken = error.must_reopen();
                let error = Arc::new(error);
                tracing::error!(%error, charges = replies.len(), "a batch of charges could not be committed");
                self.stats.count_failure();
                for reply in replies {
                    let _ = reply.send(Err(MeterError::Store(Arc::clone(&error))));
                }
                FinishedCommit { lanes, broken }
            }
        }
    }
}
