//! The spans of a posting that waits for its commit.

use tracing::{Span, info_span};

use crate::trace::TARGET;

/// A posting in the queue. Its caller's span has two parts here: `queue` until its commit starts, then `commit`.
#[derive(Debug)]
pub(super) struct Waiting {
    caller: Span,
    queue: Span,
}

impl Waiting {
    /// The posting is queued.
    pub(super) fn start() -> Self {
        let queue = info_span!(target: TARGET, "queue");
        let caller = if queue.is_disabled() { Span::none() } else { Span::current() };
        Self { caller, queue }
    }

    /// Its commit starts, with this many postings. Returns the span of the commit, if spans are recorded.
    pub(super) fn commit(self, postings: usize) -> Option<Span> {
        let Self { caller, queue } = self;
        if queue.is_disabled() {
            return None;
        }
        drop(queue);
        Some(info_span!(target: TARGET, parent: &caller, "commit", metering.batch = postings))
    }
}
