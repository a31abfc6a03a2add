//! Counts a request as in flight until its response has been sent, for keys with a limit on that.
//!
//! The layer puts [`InFlightSlot`] into the response's extensions. Here it moves into the body, which the connection drops
//! when the body is sent or the client has gone.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, SizeHint};
use http_body_util::BodyExt;
use metering_core::InFlightSlot;

use crate::gateway::delivery::{BodyError, NextFrame, ResponseBody};
use crate::http::Response;

/// Moves the slot of a response into its body, if it has one.
pub(super) fn until_sent(mut response: Response) -> Response {
    match response.extensions_mut().remove::<InFlightSlot>() {
        Some(in_progress) => response.map(|body| Counted { body, slot: Some(in_progress) }.boxed_unsync()),
        None => response,
    }
}

/// A body that holds a slot until it has ended or is dropped.
struct Counted<S> {
    body: ResponseBody,
    slot: Option<S>,
}

impl<S: Unpin> Body for Counted<S> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<NextFrame> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.slot = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    /// A body of these chunks that holds the slot.
    fn counted(chunks: Vec<Result<&'static str, &'static str>>, slot: &Arc<()>) -> Counted<Arc<()>> {
        let frames =
            chunks.into_iter().map(|chunk| chunk.map(|data| Frame::data(Bytes::from(data))).map_err(Into::into));
        Counted { body: StreamBody::new(stream::iter(frames)).boxed_unsync(), slot: Some(Arc::clone(slot)) }
    }

    fn is_held(slot: &Arc<()>) -> bool {
        Arc::strong_count(slot) > 1
    }

    #[tokio::test]
    async fn slot_is_held_until_the_body_ends_or_breaks() {
        let slot = Arc::new(());
        for (last, breaks) in [(Ok("b"), false), (Err("broken"), true)] {
            let mut body = counted(vec![Ok("a"), last], &slot);
            assert!(body.frame().await.unwrap().is_ok() && is_held(&slot));
            assert_eq!(body.frame().await.unwrap().is_err(), breaks);
            assert_eq!(is_held(&slot), !breaks);
            assert!(breaks || body.frame().await.is_none());
            assert!(!is_held(&slot), "{last:?}");
        }
    }

    #[test]
    fn slot_is_released_with_a_body_that_nobody_reads() {
        let slot = Arc::new(());
        drop(counted(vec![Ok("a")], &slot));
        assert!(!is_held(&slot));
    }
}
