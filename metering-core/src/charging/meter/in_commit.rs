//! A batch while it is committed.

use std::sync::Arc;
use std::time::Instant;

use tracing::Span;

use super::MeterError;
use super::lanes::Batch;
use super::postings::{Postings, Request};
use super::reply::{ReplySender, slot};
use super::waiting::Waiting;
use super::wakes::Round;
use crate::charging::charge::Decision;
use crate::charging::hold::HoldAction;
use crate::charging::posting::{Outcome, Posting};
use crate::store::StoreError;

/// The callers of a batch in commit. Dropped without an end, because the commit panicked or was cancelled, it has an
/// unknown outcome, as with a broken store.
pub(super) struct InCommit<'a> {
    of: &'a Postings,
    replies: Vec<ReplySender>,
    lanes: Vec<usize>,
    spans: Vec<Span>,
    started_at: Instant,
    has_ended: bool,
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
        (postings, Self { of, replies, lanes, spans, started_at: Instant::now(), has_ended: false })
    }

    /// Answers the callers, and frees the lanes.
    pub(super) fn end(mut self, outcomes: Result<Vec<Outcome>, StoreError>) {
        let (replies, stats) = (std::mem::take(&mut self.replies), &self.of.stats);
        stats.count_commit(replies.len(), self.started_at.elapsed());
        self.spans.clear();
        let mut round = Round::default();
        let is_broken = match outcomes {
            Ok(outcomes) => {
                assert_eq!(outcomes.len(), replies.len(), "a store returns one outcome per posting");
                stats.count_success(&outcomes);
                for (outcome, reply) in outcomes.into_iter().zip(replies) {
                    stats.count_outcome(&outcome);
                    if let Err(Ok(outcome)) = reply.send(Ok(outcome), &mut round) {
                        self.release_unclaimed(&outcome);
                    }
                }
                false
            }
            Err(error) => {
                let is_broken = error.must_reopen();
                let error = Arc::new(error);
                tracing::error!(%error, charges = replies.len(), "a batch of charges could not be committed");
                stats.count_failure();
                for reply in replies {
                    let _ = reply.send(Err(MeterError::Store(Arc::clone(&error))), &mut round);
                }
                is_broken
            }
        };
        self.has_ended = true;
        self.of.ended(&self.lanes, is_broken);
    }

    /// Releases a hold whose caller has gone: the request will not be served. A charge stays recorded.
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
            self.of.ended(&self.lanes, true);
        }
    }
}
