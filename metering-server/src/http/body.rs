//! Reads request bodies. All bodies are read here, so that every read has a size limit and a timeout.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use metering_core::wire::ErrorCode;

use crate::http::Problem;

/// Reads the whole body: at most `limit` bytes, within `timeout`.
///
/// # Errors
/// 413 when it is too large, 408 when it is too slow, 400 when the client breaks off.
pub(crate) async fn read_capped<B>(body: B, limit: usize, timeout: Duration) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || {
        let message = format!("The body is too large: at most {limit} bytes are accepted.");
        Problem::new(ErrorCode::PayloadTooLarge, message)
    };
    // If the announced length is too large, refuse before the client sends the body.
    if usize::try_from(body.size_hint().lower()).map_or(true, |announced| announced > limit) {
        return Err(too_large());
    }
    match tokio::time::timeout(timeout, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::new(ErrorCode::InvalidJson, "The body is incomplete or not valid HTTP.")),
        Err(_) => Err(Problem::new(ErrorCode::RequestTimeout, "The body took too long to arrive; send it again.")),
    }
}
