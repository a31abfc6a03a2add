//! Successful responses. Error statuses become a [`Refusal`] here, so callers only see 2xx.

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, StatusCode};
use metering_core::shown_fields;
use serde::de::DeserializeOwned;

use crate::error::{ClientError, Refusal};
use crate::transport::{BodyStream, Unreachable};

/// The largest response body that is buffered, in bytes.
pub(crate) const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A response with its whole body.
#[derive(Debug, Clone)]
pub struct Response {
    /// The HTTP status, 200 to 299.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// A response whose body has not been read yet.
pub struct OpenResponse {
    /// The HTTP status, 200 to 299.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: BodyStream,
}

shown_fields!(OpenResponse: status);

impl Response {
    /// Parses the body as JSON.
    ///
    /// # Errors
    /// [`ClientError::Garbled`] when it is not the JSON of a `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        // Say where the error is, but do not quote the text: the response may contain a key.
        serde_json::from_slice(&self.body).map_err(|error| {
            ClientError::Garbled(format!(
                "not the expected JSON document (line {}, column {})",
                error.line(),
                error.column()
            ))
        })
    }

    /// The balance after a metered request, in credits, exactly as the service wrote it.
    #[must_use]
    pub fn credit_balance(&self) -> Option<&str> {
        header(&self.headers, metering_core::wire::BALANCE_HEADER)
    }

    /// The charge of a metered request, in credits, exactly as the service wrote it.
    #[must_use]
    pub fn credits_charged(&self) -> Option<&str> {
        header(&self.headers, metering_core::wire::CHARGED_HEADER)
    }
}

impl OpenResponse {
    /// Reads the whole body.
    ///
    /// # Errors
    /// When the body breaks off, or is too large to buffer.
    pub async fn read_to_end(self) -> Result<Response, ClientError> {
        let body = read_body(self.body).await?;
        Ok(Response { status: self.status, headers: self.headers, body })
    }
}

pub(crate) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Turns responses with an error status into errors.
pub(crate) async fn accepted(response: http::Response<BodyStream>) -> Result<OpenResponse, ClientError> {
    let (head, body) = response.into_parts();
    if head.status.is_success() {
        return Ok(OpenResponse { status: head.status, headers: head.headers, body });
    }
    let body = read_body(body).await.unwrap_or_default();
    Err(Refusal::read(head.status, &head.headers, body).into())
}

async fn read_body(mut body: BodyStream) -> Result<Bytes, ClientError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|Unreachable(why)| Unreachable(format!("the response was cut off: {why}")))?;
        if bytes.len() + chunk.len() > RESPONSE_BYTES_MAX {
            return Err(ClientError::Garbled(format!("the body is longer than {RESPONSE_BYTES_MAX} bytes")));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.into())
}
