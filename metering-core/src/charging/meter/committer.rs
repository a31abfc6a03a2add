//! The meter's task: commits batches if the store does not do it itself, rejects charges behind slow commits, and
//! reports how the meter ended.
//!
//! If a commit is slow, charges queued behind it in its lanes are rejected instead of waiting. Nothing is written for a
//! rejected charge, so its caller may retry.

use std::sync::Arc;

use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep_until;

use super::MeterEnd;
use super::in_commit::InCommit;
use super::lanes::Batch;
use super::postings::{Postings, Request};
use super::views::{Used, Views};
use crate::store::Store;

pub(super) struct Committer {
    pub(super) store: Arc<dyn Store>,
    pub(super) postings: Arc<Postings>,
    pub(super) views: Arc<Views>,
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.postings.task_ended();
    }
}

impl Committer {
    /// Runs until the meter is drained or dropped and nothing is waiting, or until the store breaks.
    pub(super) async fn run(self) -> MeterEnd {
        let mut commits = JoinSet::new();
        loop {
            if let Some(end) = self.postings.end() {
                return end;
            }
            tokio::select! {
                // Finished commits first: that frees their lanes for the requests received next.
                biased;
                Some(_) = commits.join_next() => {}
                () = sleep_until(self.postings.next_check()) => {
                    self.postings.check_slow();
                    // The thread that was to notify the store may no longer run.
                    self.postings.tell(&*self.store);
                }
                () = self.postings.changed.notified() => {}
            }
            // Requests that have arrived join this commit instead of waiting for the next one.
            yield_now().await;
            while let Some(batch) = self.postings.take_for_task() {
                let views = Arc::clone(&self.views);
                commits.spawn(commit(Arc::clone(&self.store), Arc::clone(&self.postings), views, batch));
            }
        }
    }
}

async fn commit(store: Arc<dyn Store>, postings: Arc<Postings>, views: Arc<Views>, batch: Batch<Request>) {
    let (batch, mut in_commit) = InCommit::begin(&postings, batch);
    let (used, now) = (Used::by(&batch), postings.clock.now());
    let committed = store.commit(batch, now).await;
    match &committed {
        Ok(outcomes) => views.note(&used, outcomes, now),
        Err(_) => views.clear(),
    }
    let committed = committed.map(|outcomes| in_commit.committed(outcomes));
    in_commit.end(committed);
}
