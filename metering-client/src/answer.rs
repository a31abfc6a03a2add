//! What a service answered, when it is no error.

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use crate::error::{ClientError, Refusal};
use crate::transport::{BodyStream, Unreachable};

/// The largest answer that is kept as a whole, in bytes.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An answer that is all there.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status, 200 to 299.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// An answer whose body is still to come.
pub struct OpenAnswer {
    /// The HTTP status, 200 to 299.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: BodyStream,
}

impl std::fmt::Debug for OpenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAnswer").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Answer {
    /// The body's JSON.
    ///
    /// # Errors
    /// [`ClientError::Garbled`] when it is not that of a `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        // Where it stands, not what stands there: the answer may hold a key.
        serde_json::from_slice(&self.body).map_err(|error| {
            ClientError::Garbled(format!(
                "not the JSON document that was expected (line {}, column {})",
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

    /// What a metered request was charged, in credits, exactly as the service wrote it.
    #[must_use]
    pub fn credits_charged(&self) -> Option<&str> {
        header(&self.headers, metering_core::wire::CHARGED_HEADER)
    }
}

impl OpenAnswer {
    /// Waits for the body.
    ///
    /// # Errors
    /// When it does not come to its end, or is too large to be kept.
    pub async fn whole(self) -> Result<Answer, ClientError> {
        let body = read_whole(self.body).await?;
        Ok(Answer { status: self.status, headers: self.headers, body })
    }
}

pub(crate) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Takes errors of the service out of its answers.
pub(crate) async fn accepted(answer: http::Response<BodyStream>) -> Result<OpenAnswer, ClientError> {
    let (head, body) = answer.into_parts();
    if head.status.is_success() {
        return Ok(OpenAnswer { status: head.status, headers: head.headers, body });
    }
    let body = read_whole(body).await.unwrap_or_default();
    Err(Refusal::read(head.status, &head.headers, body).into())
}

async fn read_whole(mut body: BodyStream) -> Result<Bytes, ClientError> {
    let mut whole = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|Unreachable(why)| Unreachable(format!("its answer was cut off: {why}")))?;
        if whole.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(ClientError::Garbled(format!("it is longer than {ANSWER_BYTES_MAX} bytes")));
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.into())
}
