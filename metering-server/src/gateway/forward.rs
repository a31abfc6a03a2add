//! Calling an HTTP upstream, and reading its answer as delivered or not.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{StatusCode, header};
use http_body_util::BodyExt;
use metering_core::AccountId;
use metering_core::wire::ErrorCode;
use reqwest::Client;
use reqwest::redirect::Policy;
use url::Url;

use crate::config::GatewayConfig;
use crate::gateway::headers;
use crate::http::{ClientAddress, Problem, Response};

/// After how many seconds a request that the upstream could not answer may be tried again.
const RETRY_SECONDS: u64 = 5;

/// A request on its way upstream.
pub(crate) struct Call<'r> {
    /// The request's head as it came.
    pub(crate) head: &'r Parts,
    /// Path and query in normal form.
    pub(crate) target: &'r str,
    /// The whole body.
    pub(crate) body: Bytes,
    /// Who pays.
    pub(crate) account: Option<&'r AccountId>,
    /// Whether the route answers with a stream, which may be silent for long.
    pub(crate) streams: bool,
}

/// An upstream over HTTP.
#[derive(Debug)]
pub(crate) struct HttpUpstream {
    base: String,
    /// For answers that must keep coming.
    plain: Client,
    /// For streams, which may be silent.
    streaming: Client,
    patience: Duration,
}

impl HttpUpstream {
    /// An upstream at `base`, an http or https URL; its path is put before every request's.
    ///
    /// # Errors
    /// When the client cannot be set up.
    pub(crate) fn new(base: &Url, config: &GatewayConfig) -> reqwest::Result<Self> {
        let patience = config.upstream_timeout.duration();
        let builder = || {
            Client::builder()
                .connect_timeout(config.connect_timeout.duration())
                .redirect(Policy::none())
                .no_proxy()
                .tcp_nodelay(true)
        };
        Ok(Self {
            base: base.as_str().trim_end_matches('/').to_owned(),
            plain: builder().read_timeout(patience).build()?,
            streaming: builder().build()?,
            patience,
        })
    }

    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Response, Problem> {
        let client = if call.streams { &self.streaming } else { &self.plain };
        let address = call.head.extensions.get::<ClientAddress>();
        let mut request = client
            .request(call.head.method.clone(), format!("{}{}", self.base, call.target))
            .headers(headers::forwarded(&call.head.headers, address, call.account));
        if !call.body.is_empty() {
            request = request.body(call.body);
        }
        let answer = match tokio::time::timeout(self.patience, request.send()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) if error.is_timeout() => return Err(timed_out()),
            Ok(Err(error)) => {
                let error = error.without_url();
                let cause = std::iter::successors(std::error::Error::source(&error), |cause| cause.source()).last();
                let cause = cause.map(ToString::to_string).unwrap_or_default();
                tracing::warn!(%error, cause, "the upstream could not be reached");
                let message = "The service behind this route could not be reached; nothing was charged, try again.";
                return Err(Problem::new(ErrorCode::UpstreamUnreachable, message).retry_after(RETRY_SECONDS));
            }
            Err(_) => return Err(timed_out()),
        };
        delivered(answer)
    }
}

fn timed_out() -> Problem {
    let message = "The service behind this route took too long; nothing was charged, try again.";
    Problem::new(ErrorCode::UpstreamTimeout, message).retry_after(RETRY_SECONDS)
}

/// 502, 503 and 504 mean that the upstream did not serve the request; every other answer is one.
fn delivered(answer: reqwest::Response) -> Result<Response, Problem> {
    let code = match answer.status() {
        StatusCode::BAD_GATEWAY => ErrorCode::UpstreamUnreachable,
        StatusCode::SERVICE_UNAVAILABLE => ErrorCode::UpstreamUnavailable,
        StatusCode::GATEWAY_TIMEOUT => ErrorCode::UpstreamTimeout,
        _ => {
            let (mut head, body) = http::Response::<reqwest::Body>::from(answer).into_parts();
            head.headers = headers::returned(&head.headers);
            // The upstream's version is between it and us.
            head.version = http::Version::HTTP_11;
            let body = body.map_err(|error| Box::new(error.without_url()).into()).boxed_unsync();
            return Ok(http::Response::from_parts(head, body));
        }
    };
    let seconds = answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let message = "The service behind this route is unavailable; nothing was charged, try again.";
    Err(Problem::new(code, message).retry_after(seconds.unwrap_or(RETRY_SECONDS)))
}
