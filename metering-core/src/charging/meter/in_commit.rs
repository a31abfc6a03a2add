//! A batch while it is committed.

use std::sync::Arc;
use std::time::Instant;

use tracing::Span;

use super::lanes::Batch;
use super::postings::{Postings, Request};
use super::reply::{ReplySender, slot};
use super::waiting::Waiting;
use super::wakes::Round;
use super::{MeterError, MeterStats};
use crate::charging::charge::Decision;
use crate::charging::hold::HoldAction;
use crate::charging::posting::{Outcome, Posting};
use crate::store::{CommitBatch, CommitSource, StoreError};

/// The callers of a batch in commit. Dropped without an end, because the commit panicked or was cancelled, it has an
/// unknown outcome, as with a broken store.
pub(super) struct InCommit<'a> {
    of: &'a Postings,
    /// How many postings it has.
    size: usize,
    /// Postings without an outcome yet.
    replies: Vec<ReplySender>,
    /// Callers that get their outcome when it is on disk.
    kept: Vec<(ReplySender, Outcome)>,
    /// Callers that have their outcome, and proceed while it is flushed.
    ahead: Vec<ReplySender>,
    lanes: Vec<usize>,
    spans: Vec<Span>,
    started_at: Instant,
    has_ended: bool,
}

impl CommitSource for Postings {
    fn commit_next(&self, commit: &mut CommitBatch<'_>) -> bool {
        let Some(batch) = self.take_for_store() else { return false };
        let (postings, mut in_commit) = InCommit::begin(self, batch);
        let committed = commit(postings, self.clock.now(), &mut |outcomes| in_commit.decided(outcomes));
        in_commit.end(committed);
        self.is_more_for_store()
    }
}

impl<'a> InCommit<'a> {
    /// The postings to commit, and their callers.
    pub(super) fn begin(of: &'a Postings, batch: Batch<Request>) -> (Vec<Posting>, Self) {
        let Batch { items, lanes } = batch;
        let size = items.len();
        let (mut postings, mut replies, mut spans) = (Vec::with_capacity(size), Vec::with_capacity(size), Vec::new());
        for Request { posting, reply, waiting, .. } in items {
            postings.push(posting);
            replies.push(reply);
            spans.extend(waiting.commit(size));
        }
        let in_commit = Self {
            of,
            size,
            replies,
            kept: Vec::new(),
            ahead: Vec::new(),
            lanes,
            spans,
            started_at: Instant::now(),
            has_ended: false,
        };
        (postings, in_commit)
    }

    /// Takes the outcomes of a batch that is being flushed. A caller of a charge that requested an early outcome gets
    /// it.
    pub(super) fn decided(&mut self, outcomes: Vec<Outcome>) {
        let replies = self.replies_to(&outcomes);
        let mut round = Round::default();
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            if reply.is_early() && matches!(outcome, Outcome::Decided(Decision::Accepted(_))) {
                reply.decide(outcome, &mut round);
                self.ahead.push(reply);
            } else {
                self.kept.push((reply, outcome));
            }
        }
    }

    /// Takes the outcomes of a batch that is on disk.
    pub(super) fn committed(&mut self, outcomes: Vec<Outcome>) {
        self.kept = self.replies_to(&outcomes).into_iter().zip(outcomes).collect();
    }

    fn replies_to(&mut self, outcomes: &[Outcome]) -> Vec<ReplySender> {
        let replies = std::mem::take(&mut self.replies);
        assert_eq!(outcomes.len(), replies.len(), "a store returns one outcome per posting");
        replies
    }

    /// Answers the callers, and frees the lanes. If the commit succeeded, its outcomes have been taken.
    pub(super) fn end(mut self, committed: Result<(), StoreError>) {
        self.of.stats.count_commit(self.size, self.started_at.elapsed());
        self.spans.clear();
        let mut round = Round::default();
        let is_broken = match committed {
            Ok(()) => {
                self.succeed(&mut round);
                false
            }
            Err(error) => {
                let is_broken = error.must_reopen();
                self.fail(error, &mut round);
                is_broken
            }
        };
        self.has_ended = true;
        self.of.ended(&self.lanes, is_broken);
    }

    fn succeed(&mut self, round: &mut Round) {
        assert!(self.replies.is_empty(), "a store hands over the outcomes of each commit");
        let (kept, ahead, stats) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.ahead), &self.of.stats);
        if !ahead.is_empty() || kept.iter().any(|(_, outcome)| MeterStats::is_written(outcome)) {
            stats.count_success();
        }
        stats.count_early(ahead.len(), true);
        for reply in ahead {
            reply.flushed(Ok(()), round);
        }
        for (reply, outcome) in kept {
            stats.count_outcome(&outcome);
            if let Err(Ok(outcome)) = reply.send(Ok(outcome), round) {
                self.release_unclaimed(&outcome);
            }
        }
    }

    fn fail(&mut self, error: StoreError, round: &mut Round) {
        let (ahead, stats) = (std::mem::take(&mut self.ahead), &self.of.stats);
        let error = Arc::new(error);
        tracing::error!(%error, charges = self.size, "a batch of charges could not be committed");
        stats.count_failure();
        stats.count_early(ahead.len(), false);
        let failure = || MeterError::Store(Arc::clone(&error));
        for reply in ahead {
            reply.flushed(Err(failure()), round);
        }
        // Held-back outcomes have not happened.
        let kept = std::mem::take(&mut self.kept).into_iter().map(|(reply, _)| reply);
        for reply in std::mem::take(&mut self.replies).into_iter().chain(kept) {
            let _ = reply.send(Err(failure()), round);
        }
    }

    /// Releases a hold whose caller has gone: the request will not be served. A charge is still recorded.
    fn release_unclaimed(&self, outcome: &Outcome) {
        let Outcome::Decided(Decision::Accepted(receipt)) = outcome else { return };
        if let Some(release) = receipt.hold_update(HoldAction::Release).filter(|_| !receipt.repeated) {
            let (reply, _) = slot();
            let posting = Posting::Hold(release);
            self.of.push(Request { posting, reply, has_permit: false, waiting: Waiting::start() });
        }
    }
}

impl Drop for InCommit<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.of.stats.count_failure();
            self.of.ended(&self.lanes, true);
        }
    }
}
