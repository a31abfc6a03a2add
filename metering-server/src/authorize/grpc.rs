//! Unary calls of gRPC: one message in, one message or a status out.
//!
//! Over HTTP/2 that is five bytes before each message, and the status in trailers. Nothing here needs a library.

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};

use crate::http::Response;

const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
/// A flag (1 is compressed), and the length in four bytes.
const PREFIX_BYTES: usize = 5;

/// The status of a call that failed, with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    InvalidArgument = 3,
    PermissionDenied = 7,
    Unimplemented = 12,
    Unavailable = 14,
}

/// The message of a request's body; `None` if there is not exactly one, or it is compressed.
pub(super) fn message(body: &Bytes) -> Option<Bytes> {
    let (prefix, message) = body.split_at_checked(PREFIX_BYTES)?;
    let [0, length @ ..] = prefix else { return None };
    let length = u32::from_be_bytes(length.try_into().ok()?);
    (usize::try_from(length) == Ok(message.len())).then(|| body.slice(PREFIX_BYTES..))
}

/// The response with a message.
pub(super) fn response(message: &[u8]) -> Response {
    let mut body = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    body.put_u8(0);
    // Our messages are headers and a body of a few kilobytes.
    body.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    body.put_slice(message);
    let trailers = HeaderMap::from_iter([(header::HeaderName::from_static(STATUS), HeaderValue::from_static("0"))]);
    let frames = [Ok(Frame::data(body.freeze())), Ok(Frame::trailers(trailers))];
    with_type(http::Response::new(StreamBody::new(stream::iter(frames)).boxed_unsync()))
}

/// The response to a call that failed, without a message. `text` must be ASCII.
pub(super) fn failure(status: Failure, text: &'static str) -> Response {
    let mut response = crate::http::into_response(http::Response::new(Bytes::new()));
    response.headers_mut().insert(STATUS, HeaderValue::from(status as u16));
    response.headers_mut().insert(MESSAGE, HeaderValue::from_static(text));
    with_type(response)
}

fn with_type(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_one_message() {
        // body, message
        let table: [(&[u8], Option<&[u8]>); 7] = [
            (b"\0\0\0\0\x02hi", Some(b"hi")),
            (b"\0\0\0\0\0", Some(b"")),
            (b"", None),
            (b"\0\0\0\0", None),
            (b"\x01\0\0\0\x02hi", None),
            (b"\0\0\0\0\x03hi", None),
            (b"\0\0\0\0\x01hi", None),
        ];
        for (body, expected) in table {
            assert_eq!(message(&Bytes::from_static(body)).as_deref(), expected, "{body:?}");
        }
    }

    #[tokio::test]
    async fn a_response_is_a_message_and_a_status() {
        let collected = response(b"hi").into_body().collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(message(&collected.to_bytes()).as_deref(), Some(&b"hi"[..]));
        let failure = failure(Failure::PermissionDenied, "no");
        assert_eq!((failure.status().as_u16(), &failure.headers()["grpc-status"]), (200, &HeaderValue::from(7)));
        assert_eq!(failure.headers()["content-type"], "application/grpc");
    }
}
