//! The HTTP client that requests to the provider are sent with: the reqwest of the whole program.

use std::pin::Pin;
use std::time::Duration;

use http::Response;
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest response: keys, metadata or tokens.
const MAX_BYTES: usize = 256 * 1024;

/// Follows no redirect, since the client's secret is in some requests.
#[derive(Debug)]
pub(super) struct Transport(reqwest::Client);

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error(transparent)]
    Unreachable(reqwest::Error),
    #[error("the response is too large")]
    TooLarge,
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        Self::Unreachable(error.without_url())
    }
}

impl Transport {
    pub(super) fn new() -> Result<Self, reqwest::Error> {
        let redirect = reqwest::redirect::Policy::none();
        reqwest::Client::builder().timeout(TIMEOUT).redirect(redirect).build().map(Self)
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut response = self.0.execute(reqwest::Request::try_from(request)?).await?;
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await? {
            if body.len() + piece.len() > MAX_BYTES {
                return Err(HttpError::TooLarge);
            }
            body.extend_from_slice(&piece);
        }
        let mut reply = Response::new(body);
        *reply.status_mut() = response.status();
        *reply.headers_mut() = std::mem::take(response.headers_mut());
        Ok(reply)
    }
}

impl<'c> AsyncHttpClient<'c> for Transport {
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}
