//! Refunds responses that break before the first byte of their body: such a response does not count as delivered.
//!
//! The head of an ordinary response is held back until the first body byte arrives, so that the client gets a 502 if
//! that byte never comes. The head of a stream is sent immediately, because a stream may be silent for long. If it
//! breaks before its first byte, the charge is refunded although the client has seen the head.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use metering_core::Charged;

use crate::http::Response;

pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, BodyError>;
/// The next part of a body.
pub(crate) type NextFrame<E = BodyError> = Option<Result<Frame<Bytes>, E>>;

/// Whether the head must be sent without waiting for the body: event streams, and other content that is read piece by
/// piece.
pub(crate) fn is_stream(headers: &HeaderMap) -> bool {
    const KINDS: [&str; 4] =
        ["text/event-stream", "multipart/x-mixed-replace", "application/x-ndjson", "application/stream+json"];
    let media_type = media_type(headers);
    KINDS.iter().any(|stream| media_type.eq_ignore_ascii_case(stream))
}

/// Whether a body is an event stream that is not encoded, so that events can be read, added and removed.
pub(crate) fn has_plain_events(headers: &HeaderMap) -> bool {
    media_type(headers).eq_ignore_ascii_case("text/event-stream") && !headers.contains_key(header::CONTENT_ENCODING)
}

/// The media type of a body, without its parameters.
fn media_type(headers: &HeaderMap) -> &str {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Waits for the first frame of a body and puts it back in front of the rest.
///
/// # Errors
/// When the body breaks before its first byte.
pub(crate) async fn with_first_piece<B>(mut body: B) -> Result<Prefetched<B>, B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    loop {
        let Some(frame) = body.frame().await.transpose()? else { return Ok(Prefetched { first: None, body }) };
        // An empty frame is not a byte yet.
        if frame.data_ref().is_none_or(|data| !data.is_empty()) {
            return Ok(Prefetched { first: Some(frame), body });
        }
    }
}

/// A body whose first frame has been read ahead.
pub(crate) struct Prefetched<B> {
    first: Option<Frame<Bytes>>,
    body: B,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Prefetched<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<NextFrame<Self::Error>> {
        match self.first.take() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => Pin::new(&mut self.body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.first.as_ref().and_then(Frame::data_ref).map_or(0, |data| data.len() as u64);
        let rest = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + ahead);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + ahead);
        }
        hint
    }
}

/// Wraps the response so that its charge is refunded if the body breaks before its first byte.
pub(crate) fn refunded_if_broken(response: Response, charged: Charged) -> Response {
    if response.body().is_end_stream() {
        return response;
    }
    response.map(|body| RefundingBody { body, state: State::NothingPassed(charged) }.boxed_unsync())
}

/// A body that refunds its charge if it breaks before anything has been passed on.
struct RefundingBody {
    body: ResponseBody,
    state: State,
}

enum State {
    NothingPassed(Charged),
    Refunding(BoxFuture<'static, ()>, Option<BodyError>),
    Passing,
}

impl Body for RefundingBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<NextFrame> {
        if let State::Refunding(refund, error) = &mut self.state {
            ready!(refund.as_mut().poll(context));
            let error = error.take();
            self.state = State::Passing;
            return Poll::Ready(error.map(Err));
        }
        match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Err(error)) => match std::mem::replace(&mut self.state, State::Passing) {
                State::NothingPassed(charged) => {
                    // Report the error to the connection only after the refund is on disk.
                    // A refund that fails is already logged.
                    let refund = Box::pin(async move { drop(charged.refund().await) });
                    self.state = State::Refunding(refund, Some(error));
                    self.poll_frame(context)
                }
                _ => Poll::Ready(Some(Err(error))),
            },
            Some(Ok(frame)) => {
                if frame.data_ref().is_none_or(|data| !data.is_empty()) {
                    self.state = State::Passing;
                }
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                self.state = State::Passing;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        !matches!(self.state, State::Refunding(..)) && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
