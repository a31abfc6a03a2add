//! Event streams that detect clients that have gone away, by [`Comments`].

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;

use crate::http::comments::Comments;
use crate::http::connection::Connection;

/// A stream of events that ends when its client is gone.
pub(crate) struct EventStream<S> {
    events: Pin<Box<S>>,
    comments: Comments,
}

impl<S> EventStream<S> {
    /// Wraps `events` for the client of `connection`; without a connection, nothing is added.
    pub(crate) fn new(events: S, connection: Option<&Connection>) -> Self {
        Self { events: Box::pin(events), comments: Comments::new(connection) }
    }
}

impl<S, E> Stream for EventStream<S>
where
    S: Stream<Item = Result<Bytes, E>>,
{
    type Item = Result<Bytes, E>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(next) = self.events.as_mut().poll_next(context) {
            if let Some(Ok(bytes)) = &next {
                self.comments.pass(bytes);
            }
            return Poll::Ready(next);
        }
        self.comments.poll(context).map(|comment| Some(Ok(comment)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use futures_util::StreamExt;
    use tokio::sync::mpsc;
    use tokio::time::Instant;

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
