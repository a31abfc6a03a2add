//! Event streams that detect clients that have gone away.
//!
//! After a half-close, a client may still be reading or may be gone; only a write reveals which. So a silent stream
//! sends comments, which the event stream format allows at the start of any line and clients ignore. If the client is
//! gone, the second comment fails and the connection ends.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::http::connection::Connection;

/// How often a silent stream probes a client that has half-closed.
const ROUND: Duration = Duration::from_secs(5);
/// The delay of a probe's second comment. By then, the host of a client that is gone has rejected the first.
const SECOND: Duration = Duration::from_millis(250);

const COMMENT: Bytes = Bytes::from_static(b":\n");

/// A stream of events that ends when its client is gone.
pub(crate) struct EventStream<S> {
    events: Pin<Box<S>>,
    half_closed: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    timer: Option<Pin<Box<Sleep>>>,
    sent: usize,
    at_line_start: bool,
}

impl<S> EventStream<S> {
    /// Wraps `events` for the client of `connection`; without a connection, nothing is added.
    pub(crate) fn new(events: S, connection: Option<&Connection>) -> Self {
        let half_closed = connection.map(|connection| Box::pin(connection.half_closed()));
        Self { events: Box::pin(events), half_closed, timer: None, sent: 0, at_line_start: true }
    }

    /// Ready when it is time for another comment.
    fn poll_comment(&mut self, context: &mut Context<'_>) -> Poll<()> {
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
        Poll::Ready(())
    }
}

impl<S, E> Stream for EventStream<S>
where
    S: Stream<Item = Result<Bytes, E>>,
{
    type Item = Result<Bytes, E>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(next) = self.events.as_mut().poll_next(context) {
            if let Some(Ok(bytes)) = &next
                && let Some(last) = bytes.last()
            {
                self.at_line_start = *last == b'\n';
            }
            return Poll::Ready(next);
        }
        ready!(self.poll_comment(context));
        if self.at_line_start { Poll::Ready(Some(Ok(COMMENT))) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::StreamExt;
    use tokio::sync::mpsc;

    use super::*;

    type Events = EventStream<Pin<Box<dyn Stream<Item = Result<Bytes, Infallible>> + Send>>>;

    fn open(connection: &Connection) -> (mpsc::UnboundedSender<&'static str>, Events) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let events = futures_util::stream::unfold(receiver, |mut receiver| async move {
            let text: &str = receiver.recv().await?;
            Some((Ok(Bytes::from_static(text.as_bytes())), receiver))
        });
        (sender, EventStream::new(events.boxed(), Some(connection)))
    }

    async fn next(events: &mut Events) -> Option<String> {
        let next = tokio::time::timeout(Duration::from_secs(60), events.next()).await.ok()??;
        Some(String::from_utf8(next.unwrap().to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn silent_stream_sends_comments_after_a_half_close() {
        let connection = Connection::new();
        let (sender, mut events) = open(&connection);
        assert_eq!(next(&mut events).await, None, "a client that has not half-closed gets events only");
        connection.half_close();
        let started = Instant::now();
        for _ in 0..2 {
            assert_eq!(next(&mut events).await.as_deref(), Some(":\n"));
        }
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        sender.send("data: 1\n\n").unwrap();
        assert_eq!(
            next(&mut events).await.as_deref(),
            Some("data: 1\n\n"),
            "a client that still reads is still served"
        );
        assert_eq!(next(&mut events).await.as_deref(), Some(":\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn comment_is_never_sent_inside_a_line() {
        let connection = Connection::new();
        let (sender, mut events) = open(&connection);
        sender.send("data: ha").unwrap();
        assert_eq!(next(&mut events).await.as_deref(), Some("data: ha"));
        connection.half_close();
        assert_eq!(next(&mut events).await, None);
        sender.send("lf\n").unwrap();
        assert_eq!(next(&mut events).await.as_deref(), Some("lf\n"));
        assert_eq!(next(&mut events).await.as_deref(), Some(":\n"));
    }
}
