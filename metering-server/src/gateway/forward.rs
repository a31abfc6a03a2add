//! Forwards a request to the HTTP upstream and decides whether its response counts as delivered (keep the charge) or
//! not (refund it).

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, StatusCode, header};
use http_body::Body;
use http_body_util::BodyExt;
use metering_core::Charged;
use metering_core::wire::ErrorCode;
use reqwest::Client;
use reqwest::redirect::Policy;
use url::Url;

use crate::config::GatewayConfig;
use crate::gateway::{delivery, headers};
use crate::http::{ClientAddress, Problem, Response};

/// `Retry-After` for a request that the upstream could not serve, in seconds.
const RETRY_SECONDS: u64 = 5;

/// An upstream over HTTP.
#[derive(Debug)]
pub(crate) struct HttpUpstream {
    base: String,
    /// For ordinary responses, with a read timeout.
    plain: Client,
    /// For streams, without a read timeout since they may be silent.
    streaming: Client,
    response_timeout: Duration,
}

impl HttpUpstream {
    /// An upstream at `base`, an http or https URL whose path is prepended to every request's.
    ///
    /// # Errors
    /// When the client cannot be set up.
    pub(crate) fn new(base: &Url, config: &GatewayConfig) -> reqwest::Result<Self> {
        let response_timeout = config.upstream_timeout.duration();
        let builder = || {
            Client::builder()
                .connect_timeout(config.connect_timeout.duration())
                .redirect(Policy::none())
                .no_proxy()
                .tcp_nodelay(true)
        };
        Ok(Self {
            base: base.as_str().trim_end_matches('/').to_owned(),
            plain: builder().read_timeout(response_timeout).build()?,
            streaming: builder().build()?,
            response_timeout,
        })
    }

    /// Forwards a request. The response of a stream route (`streams`) may be silent for long.
    ///
    /// # Errors
    /// A 502, 503 or 504 when the upstream did not serve the request.
    pub(crate) async fn call(&self, head: &Parts, body: Bytes, streams: bool) -> Result<Response, Problem> {
        let client = if streams { &self.streaming } else { &self.plain };
        let target = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let address = head.extensions.get::<ClientAddress>();
        let account = head.extensions.get::<Charged>().map(|charged| &charged.account);
        let mut request = client
            .request(head.method.clone(), format!("{}{target}", self.base))
            .headers(headers::forwarded(&head.headers, address, account));
        if !body.is_empty() {
            request = request.body(body);
        } else if announces_length(head) {
            // Otherwise no header would say that the body is empty, and some servers reject such a POST with 411.
            request = request.header(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let response = match tokio::time::timeout(self.response_timeout, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(broken(error)),
            Err(_) => return Err(timed_out()),
        };
        delivered(response, streams).await
    }
}

/// Whether the request must declare that its body is empty (RFC 9110, section 8.6).
fn announces_length(head: &Parts) -> bool {
    matches!(head.method, Method::POST | Method::PUT | Method::PATCH)
        || head.headers.contains_key(header::CONTENT_LENGTH)
}

/// The upstream could not be reached, sent an invalid response, or broke off before the first byte of its body.
fn broken(error: reqwest::Error) -> Problem {
    if error.is_timeout() {
        return timed_out();
    }
    let error = error.without_url();
    let cause = std::iter::successors(std::error::Error::source(&error), |cause| cause.source()).last();
    let cause = cause.map(ToString::to_string).unwrap_or_default();
    tracing::warn!(%error, cause, "the upstream could not be reached or broke off its response");
    unreachable_upstream()
}

fn unreachable_upstream() -> Problem {
    let message = "The service behind this route could not be reached. Nothing was charged; try again.";
    Problem::new(ErrorCode::UpstreamUnreachable, message).retry_after(RETRY_SECONDS)
}

fn timed_out() -> Problem {
    let message = "The service behind this route took too long. Nothing was charged; try again.";
    Problem::new(ErrorCode::UpstreamTimeout, message).retry_after(RETRY_SECONDS)
}

/// A 502, 503, 504 or an unsolicited 1xx means that the upstream did not serve the request. Any other response counts
/// as delivered, unless it breaks before the first byte of its body.
async fn delivered(response: reqwest::Response, streams: bool) -> Result<Response, Problem> {
    let code = match response.status() {
        status if status.is_informational() => {
            // The gateway never sends `Upgrade`, so the connection cannot have switched to anything.
            tracing::warn!(%status, "the upstream sent an informational (1xx) status as its final response");
            return Err(unreachable_upstream());
        }
        StatusCode::BAD_GATEWAY => ErrorCode::UpstreamUnreachable,
        StatusCode::SERVICE_UNAVAILABLE => ErrorCode::UpstreamUnavailable,
        StatusCode::GATEWAY_TIMEOUT => ErrorCode::UpstreamTimeout,
        _ => return pass_on(response, streams).await,
    };
    let seconds = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let message = "The service behind this route is unavailable. Nothing was charged; try again.";
    Err(Problem::new(code, message).retry_after(seconds.unwrap_or(RETRY_SECONDS)))
}

/// Passes the upstream's response on: at once for a stream, otherwise once the first byte of its body has arrived.
async fn pass_on(response: reqwest::Response, streams: bool) -> Result<Response, Problem> {
    let (mut head, body) = http::Response::<reqwest::Body>::from(response).into_parts();
    let streams = streams || delivery::is_stream(&head.headers);
    head.headers = headers::returned(&head.headers);
    // The HTTP version of the upstream connection does not matter to the client.
    head.version = http::Version::HTTP_11;
    let plain = |error: reqwest::Error| Box::new(error.without_url()).into();
    if streams || body.is_end_stream() {
        return Ok(http::Response::from_parts(head, body.map_err(plain).boxed_unsync()));
    }
    let body = delivery::with_first_piece(body).await.map_err(broken)?;
    Ok(http::Response::from_parts(head, body.map_err(plain).boxed_unsync()))
}
