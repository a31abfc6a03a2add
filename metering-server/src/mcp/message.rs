//! Parses MCP messages from HTTP bodies, and converts rmcp's plain-text refusals to the service's error format.

use std::convert::Infallible;

use bytes::Bytes;
use http::{StatusCode, header};
use http_body_util::BodyExt;
use metering_core::wire::ErrorCode;
use rmcp::model::ClientJsonRpcMessage;

use crate::http::Problem;

/// Parses a client's message.
///
/// # Errors
/// 400 when it is not an MCP message.
pub(super) fn read(body: &[u8]) -> Result<ClientJsonRpcMessage, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let message = format!("The body is not a valid MCP message: {error}.");
        Problem::new(ErrorCode::InvalidJson, message)
    })
}

/// Converts refusals that rmcp sends as plain text before JSON-RPC processing, such as for a wrong media type. For a
/// body that is not a message, rmcp also blames the media type, so the body is parsed here.
///
/// # Errors
/// The refusal, when it is one.
pub(super) async fn refused<B>(response: http::Response<B>, body: &[u8]) -> Result<http::Response<B>, Problem>
where
    B: http_body::Body<Data = Bytes, Error = Infallible> + Send,
{
    let code = match response.status() {
        StatusCode::BAD_REQUEST => ErrorCode::ValidationFailed,
        StatusCode::NOT_ACCEPTABLE => ErrorCode::NotAcceptable,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            read(body)?;
            ErrorCode::UnsupportedMediaType
        }
        _ => return Ok(response),
    };
    let media_type = response.headers().get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    if media_type.is_some_and(|media_type| media_type.starts_with(b"application/json")) {
        return Ok(response);
    }
    let text = match response.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    Err(Problem::new(code, String::from_utf8_lossy(&text)))
}
