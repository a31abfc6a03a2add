use crate::charging::posting::{Outcome, Posting};
use crate::clock::Timestamp;
use crate::store::StoreError;

/// The postings that wait for a commit, for a store that commits on a thread of its own
/// ([`Store::commit_from`](crate::Store::commit_from)).
pub trait CommitSource: Send + Sync {
    /// Takes the next batch, commits it with `commit`, and answers its callers. Returns whether more postings wait: if
    /// not, the source offers itself again.
    fn commit_next(&self, commit: &mut CommitBatch<'_>) -> bool;
}

/// Commits a batch as [`Store::commit`](crate::Store::commit) does, on the current thread.
pub type CommitBatch<'a> = dyn FnMut(Vec<Posting>, Timestamp) -> Result<Vec<Outcome>, StoreError> + 'a;
