//! Forwards a request to the HTTP upstream and decides whether its response counts as delivered (keep the charge) or
//! not (refund it).

mod body;
mod connection;
mod exchange;
mod failure;
mod http2;
mod pool;
mod upstream_error;

use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryFutureExt;
use http::request::Parts;
use http::uri::{InvalidUri, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body::Body;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use metering_core::Charged;
use metering_core::wire::ErrorCode;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::Instrument;
use url::Url;

use crate::config::{GatewayConfig, Http2};
use crate::gateway::delivery::BodyError;
use crate::gateway::passed_headers::PassedHeaders;
use crate::gateway::public_address::{PublicAddress, PublicUrl};
use crate::gateway::redirects::Redirects;
use crate::gateway::reports::DeclaredTrailers;
use crate::gateway::websocket::{Accepted, Handshake, handshake};
use crate::gateway::{delivery, headers};
use crate::http::{ClientAddress, Connection, Problem, Response};
use crate::operations::spans;
use body::{Link, UpstreamBody};
use connection::UpstreamConnection;
use pool::Pool;
pub(crate) use upstream_error::Reached;
use upstream_error::UpstreamError;

/// `Retry-After` for a request that the upstream could not serve, in seconds.
const RETRY_SECONDS: u64 = 5;

/// How often the pool is checked for expired connections.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(15);

/// An upstream over HTTP.
#[derive(Debug)]
pub(crate) struct HttpUpstream {
    pool: Arc<Pool>,
    /// The upstream's `Host` header.
    host: HeaderValue,
    /// Prepended to the path of every request; empty or without a trailing slash.
    prefix: String,
    redirects: Redirects,
    public_url: Option<PublicUrl>,
    /// Whether to send the client's `Host` to the upstream instead of the upstream's own.
    preserve_host: bool,
    response_timeout: Duration,
    /// Its name in the log, if it is one of several.
    name: Option<Box<str>>,
    /// The headers that are added to its requests, if they are not those of the default upstream.
    added: Option<Arc<[(HeaderName, HeaderValue)]>>,
}

/// Why an upstream did not serve a request.
#[derive(Debug)]
pub(crate) struct Unserved {
    /// The response to the client.
    pub(crate) problem: Problem,
    /// How far the request got.
    pub(crate) reached: Reached,
}

impl HttpUpstream {
    /// An upstream at `base`, an http or https URL whose path is prepended to every request's. `public_url` is where
    /// clients reach the gateway, and `workers` how many of them forward requests. Must be called on a Tokio runtime.
    ///
    /// # Errors
    /// When the URL has no host, or the system's certificates cannot be read.
    pub(crate) fn new(
        base: &Url,
        public_url: Option<Url>,
        (config, http2): (&GatewayConfig, Http2),
        workers: NonZeroUsize,
    ) -> std::io::Result<Self> {
        let host = &base[url::Position::BeforeHost..url::Position::AfterPort];
        let upstream = Uri::builder().scheme(base.scheme()).authority(host).path_and_query("/").build();
        let host = HeaderValue::try_from(host).map_err(std::io::Error::other)?;
        let upstream = upstream.map_err(std::io::Error::other)?;
        let (connect_timeout, max_idle) = (config.connect_timeout.duration(), config.max_idle_connections);
        let pool = Arc::new(Pool::new(upstream, connect_timeout, http2, max_idle, workers)?);
        tokio::spawn(expire(Arc::downgrade(&pool)));
        let prefix = base.path().trim_end_matches('/').to_owned();
        let (redirects, preserve_host) = (Redirects::of(base), config.preserve_host);
        let response_timeout = config.upstream_timeout.duration();
        let public_url = public_url.as_ref().map(PublicUrl::of).transpose().map_err(std::io::Error::other)?;
        let (name, added) = (None, None);
        Ok(Self { pool, host, prefix, redirects, public_url, preserve_host, response_timeout, name, added })
    }

    /// The same as one of several upstreams: with a name for the log, and other headers to add than the default one's.
    pub(crate) fn named(self, name: &str, added: Vec<(HeaderName, HeaderValue)>) -> Self {
        Self { name: Some(name.into()), added: Some(added.into()), ..self }
    }

    /// How long it may take to start its response.
    pub(crate) fn response_timeout(&self) -> Duration {
        self.response_timeout
    }

    /// Forwards a request. The response of a stream route (`streams`) may be silent for long.
    ///
    /// # Errors
    /// A 502, 503 or 504 when the upstream did not serve the request.
    pub(crate) fn call(
        &self,
        head: &Parts,
        body: Bytes,
        streams: bool,
    ) -> impl Future<Output = Result<Response, Problem>> {
        self.attempt(head, body, streams, self.response_timeout).map_err(|unserved| unserved.problem)
    }

    /// The same, with a timeout for the start of its response.
    ///
    /// # Errors
    /// The same, and whether another upstream may get the request.
    pub(crate) async fn attempt(
        &self,
        head: &Parts,
        body: Bytes,
        streams: bool,
        within: Duration,
    ) -> Result<Response, Unserved> {
        let span = spans::of_upstream(head.method.as_str(), self.name.as_deref());
        let exchanged = timeout(within, self.exchange(head, body)).instrument(span.clone()).await;
        let exchanged = exchanged.unwrap_or(Err(UpstreamError::TimedOut));
        spans::upstream_responded(&span, exchanged.as_ref().ok().map(|(response, _)| response.status()));
        drop(span);
        let (response, link) = exchanged.map_err(|error| self.unserved(&error))?;
        let link = match (response.status(), head.extensions.get(), link) {
            (StatusCode::SWITCHING_PROTOCOLS, Some(handshake), Link::Http1(connection)) => {
                let switched = self.switched(handshake, head.extensions.get(), response, connection).await;
                return switched.map_err(|problem| Unserved { problem, reached: Reached::End });
            }
            (_, _, link) => link,
        };
        let request = head;
        let (mut head, incoming) = response.into_parts();
        let silence = (!streams).then_some(self.response_timeout);
        let streams = streams || delivery::is_stream(&head.headers);
        let body = UpstreamBody::new(incoming, link, Arc::clone(&self.pool), silence);
        if let Some(problem) = undelivered(head.status, &head.headers) {
            body.discard();
            return Err(Unserved { problem, reached: Reached::Upstream });
        }
        if head.headers.contains_key(header::TRAILER) {
            head.extensions.insert(DeclaredTrailers::of(&head.headers));
        }
        headers::clean_response(&mut head.headers);
        self.redirects.rewrite(&mut head.headers, || self.public_address(request));
        // The HTTP version of the upstream connection does not matter to the client.
        head.version = http::Version::HTTP_11;
        if streams || body.is_end_stream() {
            return Ok(http::Response::from_parts(head, body.map_err(Into::into).boxed_unsync()));
        }
        // Pass on a stream immediately, anything else once the first byte of its body has arrived.
        let body = delivery::with_first_piece(body).await.map_err(|error| self.unserved(&error))?;
        Ok(http::Response::from_parts(head, body.map_err(Into::into).boxed_unsync()))
    }

    /// Takes over the connection of an upstream that has switched to WebSocket.
    async fn switched(
        &self,
        handshake: &Handshake,
        charged: Option<&Charged>,
        mut response: http::Response<Incoming>,
        connection: UpstreamConnection,
    ) -> Result<Response, Problem> {
        if !handshake::is_accepted(response.headers()) {
            tracing::warn!(upstream = self.name.as_deref(), "the upstream switched to another protocol than WebSocket");
            return Err(not_served("switched to another protocol than WebSocket"));
        }
        let switched = timeout(self.response_timeout, connection.switched(&mut response)).await;
        let switched = switched.map_err(|_| UpstreamError::TimedOut).and_then(|switched| Ok(switched?));
        let accepted = Accepted::new(handshake, switched.map_err(|error| self.unserved(&error).problem)?, charged);
        let (mut head, _) = response.into_parts();
        headers::clean_response(&mut head.headers);
        handshake::switch(&mut head.headers);
        head.extensions.insert(accepted);
        Ok(http::Response::from_parts(head, Empty::new().map_err(|never| match never {}).boxed_unsync()))
    }

    /// Requests a path of the upstream itself, to see whether it works.
    ///
    /// # Errors
    /// What it did instead of responding with 2xx or 3xx.
    pub(crate) async fn probe(&self, path: &PathAndQuery, within: Duration) -> Result<(), String> {
        let (mut head, ()) = Request::new(()).into_parts();
        head.uri = Uri::from(path.clone());
        let exchanged = timeout(within, self.exchange(&head, Bytes::new())).await;
        let (response, link) = exchanged.unwrap_or(Err(UpstreamError::TimedOut)).map_err(|e| e.to_string())?;
        let status = response.status();
        UpstreamBody::new(response.into_body(), link, Arc::clone(&self.pool), None).discard();
        if status.is_success() || status.is_redirection() {
            return Ok(());
        }
        Err(format!("it responded with {}", status.as_u16()))
    }

    fn unserved(&self, error: &UpstreamError) -> Unserved {
        Unserved { problem: broken(error, self.name.as_deref()), reached: error.reached() }
    }

    /// Where the client sent the request.
    fn public_address<'a>(&'a self, head: &'a Parts) -> PublicAddress<'a> {
        let scheme = head.extensions.get::<Connection>().map_or("http", Connection::scheme);
        PublicAddress::find(&head.headers, head.extensions.get(), scheme, self.public_url.as_ref())
    }

    fn request(&self, head: &Parts, body: Bytes) -> Result<Request<Full<Bytes>>, InvalidUri> {
        let target = head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let target = match self.prefix.as_str() {
            "" => target,
            prefix => PathAndQuery::try_from(format!("{prefix}{target}"))?,
        };
        let address = head.extensions.get::<ClientAddress>();
        let charged = head.extensions.get::<Charged>();
        let account = charged.map(|charged| &charged.account);
        let public = self.public_address(head);
        let asked_for = || HeaderValue::from_str(&public.authority()?).ok();
        let host = self.preserve_host.then(asked_for).flatten().unwrap_or_else(|| self.host.clone());
        let passed: Option<&PassedHeaders> = head.extensions.get();
        let own = self.added.as_ref().map(|added| passed.cloned().unwrap_or_default().with_added(Arc::clone(added)));
        let passed = own.as_ref().or(passed);
        let mut headers = headers::forwarded(&head.headers, host, &public, address, account, passed);
        if let Some(price) = charged.and_then(Charged::usage_price) {
            headers::ask_for_report(&mut headers, price.report());
        }
        if head.extensions.get::<Handshake>().is_some() {
            handshake::switch(&mut headers);
        }
        spans::propagate(&mut headers);
        if body.is_empty() && announces_length(head) {
            // Otherwise no header would say that the body is empty, and some servers reject such a POST with 411.
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = Uri::from(target);
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// Closes expired connections for as long as the pool exists.
async fn expire(pool: Weak<Pool>) {
    let mut interval = interval(EXPIRY_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        match pool.upgrade() {
            Some(pool) => pool.expire(),
            None => return,
        }
    }
}

/// Whether the request must declare that its body is empty (RFC 9110, section 8.6).
fn announces_length(head: &Parts) -> bool {
    matches!(head.method, Method::POST | Method::PUT | Method::PATCH)
        || head.headers.contains_key(header::CONTENT_LENGTH)
}

/// The response broke off while its body was read, before any of it was passed on.
pub(crate) fn broken_body(error: &BodyError) -> Problem {
    error.downcast_ref().map_or_else(|| not_served("broke off its response"), |error| broken(error, None))
}

/// The response took too long.
pub(crate) fn too_late() -> Problem {
    broken(&UpstreamError::TimedOut, None)
}

/// The upstream could not be reached, sent an invalid response, or broke off before the first byte of its body.
fn broken(error: &UpstreamError, upstream: Option<&str>) -> Problem {
    if matches!(error, UpstreamError::TimedOut | UpstreamError::ConnectTimedOut) {
        let message = "The service behind this route took too long. Nothing was charged; try again.";
        return Problem::new(ErrorCode::UpstreamTimeout, message).retry_after(RETRY_SECONDS);
    }
    let cause = std::iter::successors(std::error::Error::source(error), |cause| cause.source()).last();
    let cause = cause.map(ToString::to_string).unwrap_or_default();
    match error {
        UpstreamError::Http(error) if failure::is_unreadable(error) => {
            tracing::warn!(upstream, %error, cause, "the upstream sent a response that cannot be read");
        }
        _ => tracing::warn!(upstream, %error, cause, "the upstream could not be reached or broke off its response"),
    }
    not_served(&match error {
        UpstreamError::Http(error) => failure::what_happened(error),
        UpstreamError::TooLong(_) => "cannot be asked for a path that is this long".to_owned(),
        UpstreamError::Connect(_) | UpstreamError::ConnectTimedOut | UpstreamError::TimedOut => {
            "could not be reached".to_owned()
        }
    })
}

/// The response to a request that was not served. `what` is what the upstream did.
fn not_served(what: &str) -> Problem {
    let message = format!("The service behind this route {what}. Nothing was charged; try again.");
    Problem::new(ErrorCode::UpstreamUnreachable, message).retry_after(RETRY_SECONDS)
}

/// A 502, 503, 504 or an unsolicited 1xx means that the upstream did not serve the request. Any other response counts
/// as delivered, although its status may be free, unless it breaks before the first byte of its body.
fn undelivered(status: StatusCode, headers: &HeaderMap) -> Option<Problem> {
    let code = match status {
        status if status.is_informational() => {
            // Only handshakes have an `Upgrade`, so the connection cannot have switched to anything.
            tracing::warn!(%status, "the upstream sent an informational (1xx) status as its final response");
            return Some(not_served(&format!("ended its response with status {}", status.as_u16())));
        }
        StatusCode::BAD_GATEWAY => ErrorCode::UpstreamUnreachable,
        StatusCode::SERVICE_UNAVAILABLE => ErrorCode::UpstreamUnavailable,
        StatusCode::GATEWAY_TIMEOUT => ErrorCode::UpstreamTimeout,
        _ => return None,
    };
    let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let message = "The service behind this route is unavailable. Nothing was charged; try again.";
    Some(Problem::new(code, message).retry_after(seconds.unwrap_or(RETRY_SECONDS)))
}

#[cfg(test)]
mod tests;
