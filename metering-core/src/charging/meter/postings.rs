//! The postings that wait for their commit.
//!
//! A store with a thread of its own takes them there, batch after batch (`CommitSource`): between two commits, no
//! other thread has to run. For any other store, the meter's task takes them.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use super::lanes::{Batch, Lanes};
use super::reply::ReplySender;
use super::waiting::Waiting;
use super::wakes::Round;
use super::{MeterEnd, MeterError, MeterStats};
use crate::charging::posting::Posting;
use crate::clock::Clock;
use crate::store::{CommitSource, Store, StoreError};

/// A commit that takes longer than this counts as slow. A healthy store commits in milliseconds.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often commits that the store runs are checked for being slow. The task is not woken when they begin.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A posting and the way back to its caller.
pub(super) struct Request {
    pub(super) posting: Posting,
    pub(super) reply: ReplySender,
    /// Whether it took one of the queue's permits, which is returned when its commit begins.
    pub(super) has_permit: bool,
    pub(super) waiting: Waiting,
}

pub(super) struct Postings {
    state: Mutex<State>,
    max_batch: usize,
    /// One permit per request that may wait. A request returns its permit when its commit begins.
    pub(super) permits: Semaphore,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) stats: Arc<MeterStats>,
    /// Wakes the meter's task.
    pub(super) changed: Notify,
}

struct State {
    lanes: Lanes<Request>,
    /// Commits in progress that are not slow yet, oldest first: when each becomes slow, and its lanes.
    expected: VecDeque<(Instant, Vec<usize>)>,
    /// Commits in progress, slow ones too.
    in_progress: usize,
    /// Since when postings wait although no commit is in progress: the store's thread is busy with other work.
    waiting_since: Option<Instant>,
    /// Whether that takes too long.
    is_stuck: bool,
    /// The task or thread that takes the next batch.
    taker: Taker,
    is_open: bool,
    is_broken: bool,
    has_task_ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taker {
    /// The store's thread, to notify of the next posting.
    StoreIdle,
    /// The store's thread, already notified that postings wait.
    StoreActive,
    /// The meter's task, because the store has no thread for it.
    Task,
}

impl Postings {
    pub(super) fn new(
        lanes: NonZeroUsize,
        queue: usize,
        batch: NonZeroUsize,
        clock: Arc<dyn Clock>,
        stats: Arc<MeterStats>,
    ) -> Self {
        let state = State {
            lanes: Lanes::new(lanes.get()),
            expected: VecDeque::new(),
            in_progress: 0,
            waiting_since: None,
            is_stuck: false,
            taker: Taker::StoreIdle,
            is_open: true,
            is_broken: false,
            has_task_ended: false,
        };
        let (permits, changed) = (Semaphore::new(queue), Notify::new());
        Self { state: Mutex::new(state), max_batch: batch.get(), permits, clock, stats, changed }
    }

    /// Adds a posting. A charge that would wait for a slow commit is rejected at once. Returns whether to
    /// [notify](Self::tell) the committer soon; `None` if no postings are accepted any more.
    pub(super) fn push(&self, request: Request) -> Option<bool> {
        let has_permit = request.has_permit;
        let mut state = self.state();
        if !state.is_open {
            drop(state);
            self.permits.add_permits(usize::from(has_permit));
            return None;
        }
        let rejected = state.assign_lane(request);
        let is_known = rejected.is_some() || state.taker == Taker::StoreActive;
        drop(state);
        if let Some(request) = rejected {
            self.reject_behind_slow_commit([request]);
        }
        Some(!is_known)
    }

    /// Notifies the committer that postings wait, if it could commit them now: after each commit it checks by itself.
    pub(super) fn tell(self: &Arc<Self>, store: &dyn Store) {
        let mut state = self.state();
        if !state.lanes.is_due(self.max_batch) || state.taker == Taker::StoreActive {
            return;
        }
        if state.taker == Taker::StoreIdle {
            state.taker = Taker::StoreActive;
            drop(state);
            if store.commit_from(Arc::clone(self) as Arc<dyn CommitSource>) {
                return;
            }
            // The store has no thread for commits, or none any more.
            state = self.state();
            state.taker = Taker::Task;
            if state.has_task_ended {
                return self.give_up(state);
            }
        }
        drop(state);
        self.changed.notify_one();
    }

    /// The next batch, for the meter's task.
    pub(super) fn take_for_task(&self) -> Option<Batch<Request>> {
        let mut state = self.state();
        let batch = if state.taker == Taker::Task { state.take(self.max_batch) } else { None };
        drop(state);
        batch.inspect(|batch| self.make_room(batch))
    }

    /// The next batch, for the store's thread. If there is none, notify the store of the next posting.
    pub(super) fn take_for_store(&self) -> Option<Batch<Request>> {
        let mut state = self.state();
        let batch = state.take(self.max_batch);
        if batch.is_none() {
            state.taker = Taker::StoreIdle;
        }
        drop(state);
        batch.inspect(|batch| self.make_room(batch))
    }

    /// Whether more waits after a commit by the store's thread. If not, notify the store of the next posting.
    pub(super) fn is_more_for_store(&self) -> bool {
        let mut state = self.state();
        if !state.is_open {
            self.changed.notify_one();
        }
        let is_more = !state.lanes.is_empty();
        if !is_more {
            state.taker = Taker::StoreIdle;
        }
        is_more
    }

    /// Returns the permits of a batch whose commit begins.
    fn make_room(&self, batch: &Batch<Request>) {
        self.permits.add_permits(batch.items.iter().filter(|request| request.has_permit).count());
    }

    /// The commit of these lanes has ended. If the store is broken, so is the meter: postings whose commit has not
    /// begun are rejected.
    pub(super) fn ended(&self, lanes: &[usize], is_broken: bool) {
        let mut state = self.state();
        state.in_progress -= 1;
        state.expected.retain(|(_, expected)| expected != lanes);
        state.lanes.free(lanes);
        state.note_waiting();
        if is_broken {
            state.is_broken = true;
            self.give_up(state);
        }
    }

    /// The meter's task has ended, perhaps with its runtime: postings that only it could commit are rejected.
    pub(super) fn task_ended(&self) {
        let mut state = self.state();
        state.has_task_ended = true;
        if state.taker == Taker::Task {
            self.give_up(state);
        } else {
            state.is_open = false;
        }
    }

    /// Accepts no more postings, and rejects those whose commit has not begun.
    fn give_up(&self, mut state: MutexGuard<'_, State>) {
        state.is_open = false;
        let waiting = state.lanes.take_all();
        drop(state);
        self.permits.close();
        let mut round = Round::default();
        for request in waiting {
            let _ = request.reply.send(Err(MeterError::Closed), &mut round);
        }
        self.changed.notify_one();
    }

    /// Takes nothing more. Waiting postings are still committed.
    pub(super) fn close(&self) {
        self.state().is_open = false;
        self.changed.notify_one();
    }

    /// When to look for slow commits.
    pub(super) fn next_check(&self) -> Instant {
        let soon = Instant::now() + CHECK_INTERVAL;
        let state = self.state();
        match state.expected.front() {
            Some((slow_at, _)) if state.taker == Taker::Task || *slow_at < soon => *slow_at,
            _ => soon,
        }
    }

    /// Rejects the charges that wait for a slow commit, or for a store that begins none. Refunds must be made, so they
    /// wait.
    pub(super) fn check_slow(&self) {
        let now = Instant::now();
        let mut state = self.state();
        let mut is_new = false;
        while let Some((_, lanes)) = state.expected.pop_front_if(|(slow_at, _)| *slow_at <= now) {
            state.lanes.mark_slow(&lanes);
            is_new = true;
        }
        if !state.is_stuck && state.waiting_since.is_some_and(|since| since + COMMIT_TIMEOUT <= now) {
            state.is_stuck = true;
            is_new = true;
        }
        let is_stuck = state.is_stuck;
        let rejected = state.lanes.remove_waiting(is_stuck, may_reject);
        drop(state);
        if is_new {
            tracing::warn!("commits take too long; rejecting charges that would wait");
        }
        self.reject_behind_slow_commit(rejected);
    }

    /// How the meter has ended; `None` if it has not: it takes postings, or some are not on disk yet.
    pub(super) fn end(&self) -> Option<MeterEnd> {
        let state = self.state();
        if state.is_open || state.in_progress > 0 || !state.lanes.is_empty() {
            return None;
        }
        Some(if state.is_broken { MeterEnd::StoreBroken } else { MeterEnd::Drained })
    }

    fn reject_behind_slow_commit(&self, requests: impl IntoIterator<Item = Request>) {
        let mut round = Round::default();
        let error = Arc::new(StoreError::Unavailable("the database has been busy for more than ten seconds".into()));
        for Request { reply, has_permit, .. } in requests {
            self.permits.add_permits(usize::from(has_permit));
            let _ = reply.send(Err(MeterError::Store(Arc::clone(&error))), &mut round);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, max_batch: usize) -> Option<Batch<Request>> {
        // Somebody takes batches, so nothing is stuck.
        (self.waiting_since, self.is_stuck) = (None, false);
        let batch = self.lanes.take(max_batch)?;
        self.in_progress += 1;
        self.expected.push_back((Instant::now() + COMMIT_TIMEOUT, batch.lanes.clone()));
        Some(batch)
    }

    /// Records since when postings wait without a commit in progress.
    fn note_waiting(&mut self) {
        if self.waiting_since.is_none() && self.in_progress == 0 && !self.lanes.is_empty() {
            self.waiting_since = Some(Instant::now());
        }
    }

    /// Puts a request into its lane, unless it may be rejected and would wait there for a slow commit. Charges are
    /// assigned to lanes by secret, so charges of one key share a lane. Other keys of the account, and refunds, may be
    /// in other lanes; the store serialises them.
    fn assign_lane(&mut self, request: Request) -> Option<Request> {
        let lane = match &request.posting {
            Posting::Charge(charge) => self.lanes.of(charge.key.as_bytes()),
            Posting::Refund(refund) => self.lanes.of(refund.account.as_str().as_bytes()),
            Posting::Hold(update) => self.lanes.of(update.account.as_str().as_bytes()),
            Posting::Settle(settlement) => self.lanes.of(settlement.account.as_str().as_bytes()),
        };
        if (self.is_stuck || self.lanes.is_slow(lane)) && may_reject(&request) {
            return Some(request);
        }
        self.lanes.push(lane, request);
        self.note_waiting();
        None
    }
}

/// Nothing is written for a charge that is rejected, so its caller may retry.
fn may_reject(request: &Request) -> bool {
    matches!(request.posting, Posting::Charge(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charging::charge::Charge;
    use crate::charging::meter::reply::{Reply, slot};
    use crate::{ApiKey, Credits, MemoryStore, SystemClock, SystemRandomness};

    fn postings() -> Postings {
        let (clock, stats) = (Arc::new(SystemClock), Arc::default());
        Postings::new(NonZeroUsize::MIN, 10, NonZeroUsize::MIN, clock, stats)
    }

    fn push(postings: &Postings) -> Reply {
        let key = ApiKey::generate(&SystemRandomness);
        let posting = Posting::Charge(Charge::new(&key, Credits::BASE_CALL, "GET", "/price"));
        let (reply, outcome) = slot();
        assert!(postings.push(Request { posting, reply, has_permit: false, waiting: Waiting::start() }).is_some());
        outcome
    }

    #[tokio::test]
    async fn task_is_woken_only_for_what_it_can_commit() {
        let (postings, store) = (Arc::new(postings()), MemoryStore::new());
        let was_woken = async || tokio::time::timeout(Duration::ZERO, postings.changed.notified()).await.is_ok();
        let _first = push(&postings);
        postings.tell(&store);
        assert!(was_woken().await);
        let batch = postings.take_for_task().unwrap();
        let _second = push(&postings);
        postings.tell(&store);
        assert!(!was_woken().await, "its lane is in use, and the task looks again when the commit ends");
        postings.ended(&batch.lanes, false);
        assert!(postings.take_for_task().is_some());
    }

    /// The task's runtime was shut down before the end of the turn with its first posting.
    #[tokio::test(start_paused = true)]
    async fn posting_after_the_task_has_ended_is_rejected() {
        let (postings, store) = (Arc::new(postings()), MemoryStore::new());
        let outcome = push(&postings);
        postings.task_ended();
        postings.tell(&store);
        let rejected =
            tokio::time::timeout(Duration::from_secs(1), outcome).await.expect("it is rejected instead of waiting");
        assert!(matches!(rejected, Err(MeterError::Closed)), "{rejected:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn charges_do_not_wait_for_a_slow_commit_of_the_store() {
        let postings = postings();
        let (committed, waiting) = (push(&postings), push(&postings));
        let batch = postings.take_for_store().unwrap();
        tokio::time::advance(COMMIT_TIMEOUT).await;
        postings.check_slow();
        for refused in [waiting, push(&postings)] {
            assert!(matches!(refused.await, Err(MeterError::Store(_))));
        }
        postings.ended(&batch.lanes, false);
        drop(batch);
        assert!(committed.await.is_err_and(|error| error.outcome_is_unknown()), "it was in the commit");
        assert!(!postings.is_more_for_store());
    }

    #[tokio::test(start_paused = true)]
    async fn charges_do_not_wait_for_a_store_that_begins_no_commit() {
        let postings = postings();
        postings.state().taker = Taker::StoreActive; // it was notified, but its thread is busy with something else
        let early = push(&postings);
        tokio::time::advance(COMMIT_TIMEOUT - Duration::from_secs(1)).await;
        postings.check_slow();
        assert!(!postings.state().lanes.is_empty(), "it may begin one soon");
        tokio::time::advance(Duration::from_secs(1)).await;
        postings.check_slow();
        for refused in [early, push(&postings)] {
            assert!(matches!(refused.await, Err(MeterError::Store(_))));
        }
        // Once it takes something, charges wait again.
        assert!(!postings.commit_next(&mut |_, _, _| Ok(())));
        push(&postings);
        assert!(!postings.state().lanes.is_empty());
    }
}
