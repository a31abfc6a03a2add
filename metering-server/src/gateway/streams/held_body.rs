//! A response body that holds the slot of its stream.
//!
//! One type rather than a chain of adaptors: each open stream has one, and each event passes through it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::StreamPermit;
use crate::gateway::delivery::{BodyError, NextFrame, ResponseBody, has_plain_events};
use crate::gateway::error_events::EndedEarly;
use crate::http::{Comments, Connection, Response};

/// A body that ends when its stream is cancelled. Its trailers follow when it has ended.
struct HeldBody {
    body: ResponseBody,
    comments: Comments,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: EndedEarly,
    is_over: bool,
    trailers: Option<Box<HeaderMap>>,
    /// Last, so that the slot is released after the upstream's response.
    sending: Sending,
}

/// A response that is being sent. After it, its connection may serve other requests, although the stream keeps its slot
/// until the rest of the upstream's response was read.
struct Sending {
    permit: Arc<StreamPermit>,
}

impl StreamPermit {
    /// Wraps the response: its body ends when the stream is cancelled, and releases the slot when it is done.
    pub(super) fn hold(self: Arc<Self>, mut reply: Response, connection: Option<&Connection>) -> Response {
        if let (Some(connection), Some(streams)) = (connection, self.streams.lock().get_mut(&self.key)) {
            streams.connections.insert(self.number, connection.clone());
        }
        let connection = connection.filter(|_| has_plain_events(reply.headers()));
        let ended = EndedEarly::default();
        reply.extensions_mut().insert(ended.clone());
        reply.map(|body| HeldBody::new(body, self, connection, ended).boxed_unsync())
    }
}

impl HeldBody {
    /// Comments are added for the client of `connection`; without a connection, nothing is added. `ended` gets the
    /// reason.
    fn new(body: ResponseBody, permit: Arc<StreamPermit>, connection: Option<&Connection>, ended: EndedEarly) -> Self {
        let end = Box::pin(permit.end.clone().cancelled_owned());
        let (comments, sending) = (Comments::new(connection), Sending { permit });
        Self { body, comments, end, ended, is_over: false, trailers: None, sending }
    }

    /// The stream has ended, apart from its trailers.
    fn over(&mut self) -> NextFrame {
        self.is_over = true;
        self.trailers.take().map(|trailers| Ok(Frame::trailers(*trailers)))
    }
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<NextFrame> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        if this.end.as_mut().poll(context).is_ready() {
            this.ended.set(this.sending.permit.streams.why_ended());
            return Poll::Ready(this.over());
        }
        while let Poll::Ready(next) = Pin::new(&mut this.body).poll_frame(context) {
            match next.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => {
                    this.comments.pass(&data);
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Ok(Err(other))) => this.trailers = other.into_trailers().ok().map(Box::new),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(this.over()),
            }
        }
        this.comments.poll(context).map(|comment| Some(Ok(Frame::data(comment))))
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if let Some(streams) = self.permit.streams.lock().get_mut(&self.permit.key) {
            streams.connections.remove(&self.permit.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::BoxStream;
    use futures_util::{FutureExt, StreamExt, stream};
    use http_body_util::StreamBody;
    use metering_core::access::KeyHash;

    use super::*;
    use crate::gateway::streams::Streams;

    fn key() -> KeyHash {
        KeyHash::from_bytes([1; 32])
    }

    /// A body of these frames that stays open if it is not `complete`.
    fn held(streams: &Arc<Streams>, frames: Vec<Frame<Bytes>>, complete: bool) -> HeldBody {
        let rest: BoxStream<'static, Result<Frame<Bytes>, BodyError>> =
            if complete { stream::empty().boxed() } else { stream::pending().boxed() };
        let frames = stream::iter(frames.into_iter().map(Ok::<_, BodyError>)).chain(rest);
        let permit = Arc::new(streams.reserve(key()).unwrap());
        HeldBody::new(StreamBody::new(frames).boxed_unsync(), permit, None, EndedEarly::default())
    }

    fn next(body: &mut HeldBody) -> Option<Option<Frame<Bytes>>> {
        body.frame().now_or_never().map(|frame| frame.transpose().unwrap())
    }

    #[test]
    fn trailers_follow_the_data_and_the_slot_is_kept_until_the_body_is_dropped() {
        let streams = Arc::new(Streams::new(1));
        let trailers = HeaderMap::from_iter([(http::header::ETAG, http::HeaderValue::from_static("a"))]);
        let frames = vec![Frame::data(Bytes::from("a")), Frame::trailers(trailers.clone())];
        let mut body = held(&streams, frames, true);
        assert_eq!(next(&mut body).unwrap().unwrap().into_data().unwrap(), "a");
        assert_eq!(next(&mut body).unwrap().unwrap().into_trailers().unwrap(), trailers);
        assert!(next(&mut body).unwrap().is_none());
        assert_eq!(streams.count(), 1);
        drop(body);
        assert_eq!(streams.count(), 0);
    }

    #[test]
    fn stream_of_a_dead_key_ends_although_more_could_be_sent() {
        let streams = Arc::new(Streams::new(1));
        let frames = vec![Frame::data(Bytes::from("a")), Frame::data(Bytes::from("b"))];
        let mut body = held(&streams, frames, false);
        assert!(next(&mut body).unwrap().is_some());
        assert!(streams.end(&key()));
        assert!(next(&mut body).unwrap().is_none());
        assert!(next(&mut body).unwrap().is_none());
    }

    #[test]
    fn silent_stream_stays_open() {
        let streams = Arc::new(Streams::new(1));
        let mut body = held(&streams, Vec::new(), false);
        assert!(next(&mut body).is_none());
        assert!(streams.end(&key()));
        assert!(next(&mut body).unwrap().is_none());
    }
}
