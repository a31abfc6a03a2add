use crate::charging::posting::{Outcome, Posting};
use crate::clock::Timestamp;
use crate::store::StoreError;

/// The postings that wait for a commit, for a store that commits on a thread of its own
/// ([`Store::commit_from`](crate::Store::commit_from)).
pub trait CommitSource: Send + Sync {
    /// Takes the next batch, commits it with `commit`, and completes its callers. Returns whether more postings wait:
    /// if not, the source offers itself again.
    fn commit_next(&self, commit: &mut CommitBatch<'_>) -> bool;
}

/// Commits a batch as [`Store::commit`](crate::Store::commit) does, on the current thread.
///
/// The outcomes are handed over when the batch is decided and written, before it is flushed: exactly once if the commit
/// succeeds, and at most once if it fails. Callers may proceed with their outcomes while the flush is in progress, so
/// only a failure of the whole batch may change an outcome after it was handed over.
pub type CommitBatch<'a> =
    dyn FnMut(Vec<Posting>, Timestamp, &mut dyn FnMut(Vec<Outcome>)) -> Result<(), StoreError> + 'a;
