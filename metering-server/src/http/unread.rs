//! Responses to requests whose body is not read.
//!
//! The client may still be sending it, and the connection cannot be reused until all of it is read. So the response
//! closes the connection (RFC 9110, section 10.1.1), unless the body is small and is already there.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Version, header};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::reply::Response;

/// The largest body that is discarded, in bytes.
const DISCARDED_MAX: u64 = 64 << 10;
/// How long that may take: most clients send a small body together with its head, or right after it.
const WAIT: Duration = Duration::from_millis(50);

/// Responds to a request with this head without reading its body. A client that waits for `100 Continue` does not get
/// it: it would be sent when the body is first polled.
pub(crate) async fn without_reading<B>(mut response: Response, head: &Parts, body: B) -> Response
where
    B: Body<Data = Bytes> + Send,
{
    let is_small = body.size_hint().upper().is_some_and(|length| length <= DISCARDED_MAX);
    let waits = head.headers.contains_key(header::EXPECT);
    let is_gone = is_small && !waits && timeout(WAIT, discard(body)).await.unwrap_or(false);
    if !is_gone && head.version <= Version::HTTP_11 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Reads a body and discards it. Returns whether all of it arrived.
async fn discard<B: Body<Data = Bytes>>(body: B) -> bool {
    let mut body = pin!(body);
    loop {
        match body.frame().await {
            None => return true,
            Some(Ok(_)) => {}
            Some(Err(_)) => return false,
        }
    }
}
