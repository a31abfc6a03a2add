//! Streams that end too early end with an error event in the shape of their route.
//!
//! Clients of such a stream cannot see why it ended. An event can only follow a whole one, in an event stream that is
//! not encoded and whose length is not announced.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use metering_core::Error;
use metering_core::catalogue::ErrorShape;
use metering_core::charging::HoldId;
use metering_core::wire::{ErrorBody, ErrorCode};

use crate::gateway::delivery::{BodyError, NextFrame, ResponseBody, has_plain_events};
use crate::http::Response;

/// Why this service ended a stream, once it has.
#[derive(Debug, Clone, Default)]
pub(super) struct EndedEarly(Arc<OnceLock<ErrorCode>>);

impl EndedEarly {
    pub(super) fn set(&self, why: ErrorCode) {
        self.0.get_or_init(|| why);
    }
}

/// Wraps a response whose route has a shape for errors.
pub(super) fn with_error_events(mut response: Response) -> Response {
    let shape = response.extensions_mut().remove::<ErrorShape>().unwrap_or_default();
    if shape == ErrorShape::Own || !takes_events(response.headers()) {
        return response;
    }
    let id = response.extensions().get::<HoldId>().map(HoldId::to_string);
    let ended = response.extensions().get::<EndedEarly>().cloned().unwrap_or_default();
    response.map(|body| {
        ErrorEvents { body, shape, id, ended, boundary: Boundary::default(), is_over: false }.boxed_unsync()
    })
}

/// Whether an event can be added to a body.
fn takes_events(headers: &HeaderMap) -> bool {
    has_plain_events(headers) && !headers.contains_key(header::CONTENT_LENGTH)
}

struct ErrorEvents {
    body: ResponseBody,
    shape: ErrorShape,
    id: Option<String>,
    ended: EndedEarly,
    boundary: Boundary,
    is_over: bool,
}

impl ErrorEvents {
    /// The last event, if it can be sent now.
    fn last(&mut self, code: ErrorCode) -> Option<Frame<Bytes>> {
        let event = self.shape.event(&ErrorBody::new(code, message(code)), self.id.as_deref())?;
        let event = self.boundary.is_reached().then(|| Frame::data(Bytes::from(event)));
        self.is_over = event.is_some();
        event
    }
}

/// The error, and its effect on the client's money.
const fn message(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthorized => {
            "The stream ended early: its API key is no longer live. What was charged for it stays."
        }
        ErrorCode::ShuttingDown => {
            "The stream ended early: the service is stopping. What was sent is charged; send the request again."
        }
        _ => "The stream ended early: the service behind this route broke off. What was sent is charged; try again.",
    }
}

impl Body for ErrorEvents {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<NextFrame> {
        if self.is_over {
            return Poll::Ready(None);
        }
        match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.boundary.pass(data);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                let is_ours = matches!(error.downcast_ref(), Some(Error::ShuttingDown));
                let code = if is_ours { ErrorCode::ShuttingDown } else { ErrorCode::UpstreamUnreachable };
                Poll::Ready(Some(self.last(code).ok_or(error)))
            }
            None => {
                let why = self.ended.0.get().copied();
                Poll::Ready(why.and_then(|code| self.last(code)).map(Ok))
            }
        }
    }
}

/// Whether an event stream is between two events.
#[derive(Debug, Default)]
struct Boundary {
    /// The last bytes that were passed, at most four.
    tail: Vec<u8>,
}

impl Boundary {
    fn pass(&mut self, data: &[u8]) {
        self.tail.extend_from_slice(&data[data.len().saturating_sub(4)..]);
        let surplus = self.tail.len().saturating_sub(4);
        self.tail.drain(..surplus);
    }

    fn is_reached(&self) -> bool {
        let ends: [&[u8]; 4] = [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n"];
        self.tail.is_empty() || ends.iter().any(|end| self.tail.ends_with(end))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;

    /// The client's view of a stream with these pieces, and whether it ends with an error.
    async fn sent(
        kind: &'static str,
        pieces: Vec<Result<&'static str, BodyError>>,
        ended: Option<ErrorCode>,
    ) -> (String, bool) {
        let frames = pieces.into_iter().map(|piece| piece.map(|data| Frame::data(Bytes::from(data))));
        let mut response = http::Response::new(StreamBody::new(stream::iter(frames)).boxed_unsync());
        response.headers_mut().insert("content-type", kind.parse().unwrap());
        response.extensions_mut().insert(ErrorShape::OpenAi);
        let early = EndedEarly::default();
        if let Some(code) = ended {
            early.set(code);
        }
        response.extensions_mut().insert(early);
        let (mut body, mut text) = (with_error_events(response).into_body(), String::new());
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap()),
                Err(_) => return (text, true),
            }
        }
        (text, false)
    }

    #[tokio::test]
    async fn a_broken_stream_ends_with_an_error_between_events() {
        let broken = || Err("broken".into());
        let stopping = || Err(Error::ShuttingDown.into());
        let events = "text/event-stream; charset=utf-8";
        // type, pieces, why it was ended, the code in its last event, whether its end is an error
        type Row = (&'static str, Vec<Result<&'static str, BodyError>>, Option<ErrorCode>, Option<&'static str>, bool);
        let table: [Row; 9] = [
            (events, vec![Ok("data: 1\n\n"), broken()], None, Some("upstream_unreachable"), false),
            (events, vec![Ok("data: 1\r\n"), Ok("\r\n"), stopping()], None, Some("shutting_down"), false),
            (events, vec![broken()], None, Some("upstream_unreachable"), false),
            (events, vec![Ok("data: 1\n"), broken()], None, None, true),
            (events, vec![Ok("data: ha"), broken()], None, None, true),
            (events, vec![Ok("data: 1\n\n")], Some(ErrorCode::Unauthorized), Some("unauthorized"), false),
            (events, vec![Ok("data: 1")], Some(ErrorCode::Unauthorized), None, false),
            (events, vec![Ok("data: [DONE]\n\n")], None, None, false),
            ("application/json", vec![Ok("{\n\n"), broken()], None, None, true),
        ];
        for (kind, pieces, ended, code, is_error) in table {
            let before: String = pieces.iter().filter_map(|piece| piece.as_ref().ok().copied()).collect();
            let (text, broke) = sent(kind, pieces, ended).await;
            let last = text.strip_prefix(&before).unwrap();
            assert_eq!(broke, is_error, "{before:?}");
            assert_eq!(code.is_some(), last.starts_with("data: {\"error\":"), "{last}");
            assert!(code.is_none_or(|code| last.contains(code)) && (code.is_some() || last.is_empty()), "{last}");
        }
    }
}
