//! The spans of a posting that waits for its commit.

use tracing::{Span, info_span};

use crate::trace::TARGET;

/// A posting in the queue. Its caller's span has two parts here: `queue` until its commit starts, then `commit`. `None` if
/// spans are not recorded.
#[derive(Debug)]
pub(super) struct Waiting(Option<Box<Spans>>);

#[derive(Debug)]
struct Spans {
    caller: Span,
    queue: Span,
}

impl Waiting {
    /// The posting is queued.
    pub(super) fn start() -> Self {
        let queue = info_span!(target: TARGET, "queue");
        Self((!queue.is_disabled()).then(|| Box::new(Spans { caller: Span::current(), queue })))
    }

    /// Its commit starts, with this many postings. Returns the span of the commit, if spans are recorded.
    pub(super) fn commit(self, postings: usize) -> Option<Span> {
        let Spans { caller, queue } = *self.0?;
        drop(queue);
        Some(info_span!(target: TARGET, parent: &caller, "commit", metering.batch = postings))
    }
}
