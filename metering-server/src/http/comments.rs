//! Comments that a silent event stream sends to detect a client that has gone away.
//!
//! After a half-close, a client may still be reading or may be gone; only a write reveals which. So a silent stream
//! sends comments, which the event stream format allows at the start of any line and clients ignore. If the client is
//! gone, the second comment fails and the connection ends.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::http::connection::Connection;

/// How often a silent stream probes a client that has half-closed.
const ROUND: Duration = Duration::from_secs(5);
/// The delay of a probe's second comment. By then, the host of a client that is gone has rejected the first.
const SECOND: Duration = Duration::from_millis(250);

const COMMENT: Bytes = Bytes::from_static(b":\n");

/// When to send a comment in one event stream.
pub(crate) struct Comments {
    half_closed: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    timer: Option<Pin<Box<Sleep>>>,
    sent: usize,
    at_line_start: bool,
}

impl Comments {
    /// Comments for the client of `connection`; without a connection, there are none.
    pub(crate) fn new(connection: Option<&Connection>) -> Self {
        let half_closed = connection.map(|connection| Box::pin(connection.half_closed()));
        Self { half_closed, timer: None, sent: 0, at_line_start: true }
    }

    /// Records what the stream sends.
    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.at_line_start = *last == b'\n';
        }
    }

    /// Ready with a comment when it is time for one. To be polled while the stream has nothing to send.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        if let Some(half_closed) = &mut self.half_closed {
            ready!(half_closed.as_mut().poll(context));
            self.half_closed = None;
            self.timer = Some(Box::pin(sleep(Duration::ZERO)));
        }
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        ready!(timer.as_mut().poll(context));
        self.sent += 1;
        let wait = if self.sent.is_multiple_of(2) { ROUND } else { SECOND };
        timer.as_mut().reset(Instant::now() + wait);
        // Poll the timer again, so that it wakes this task.
        context.waker().wake_by_ref();
        if self.at_line_start { Poll::Ready(COMMENT) } else { Poll::Pending }
    }
}
