//! One of the upstreams that routes name: its connections, its condition and its metrics.

use std::num::NonZeroUsize;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, StatusCode};
use metrics::Counter;
use tokio::time::Instant;
use url::Url;

use super::condition::Condition;
use crate::config::{ConfigError, GatewayConfig, UpstreamConfig};
use crate::gateway::forward::{HttpUpstream, Reached, Unserved};
use crate::http::Response;
use crate::operations::metric::{counter, gauge};

/// An upstream with a name.
#[derive(Debug)]
pub(super) struct NamedUpstream {
    pub(super) config: UpstreamConfig,
    pub(super) condition: Condition,
    /// Its name, as the value of a header.
    pub(super) header: HeaderValue,
    http: HttpUpstream,
    served: Counter,
    failed: Counter,
    ejected: Counter,
}

impl NamedUpstream {
    /// Must be called on a Tokio runtime.
    ///
    /// # Errors
    /// When the system's certificates cannot be read, or the configuration was not checked.
    pub(super) fn new(
        config: UpstreamConfig,
        gateway: &GatewayConfig,
        public_url: Option<Url>,
        workers: NonZeroUsize,
    ) -> Result<Self, ConfigError> {
        let invalid =
            |error: &dyn std::fmt::Display| ConfigError::key(format!("gateway.upstreams.{}", config.name), error);
        let url = Url::parse(&config.url).map_err(|error| invalid(&error))?;
        let http =
            HttpUpstream::new(&url, public_url, (gateway, config.http2), workers).map_err(|error| invalid(&error))?;
        let http = http.named(&config.name, config.header_pairs()?);
        let header = HeaderValue::from_str(&config.name).map_err(|error| invalid(&error))?;
        let requests = |outcome: &'static str| {
            counter!(
                "metering_upstream_requests_total",
                "Requests to upstreams that routes name, by upstream and outcome",
                "upstream" => config.name.clone(),
                "outcome" => outcome
            )
        };
        let (served, failed) = (requests("served"), requests("failed"));
        let ejected = counter!(
            "metering_upstream_ejections_total",
            "How often an upstream was ejected after failures in a row",
            "upstream" => config.name.clone()
        );
        let condition = Condition::new(config.eject_after, config.eject_time.duration());
        Ok(Self { condition, header, http, served, failed, ejected, config })
    }

    /// How long it may take to start its response.
    pub(super) fn response_timeout(&self) -> Duration {
        self.http.response_timeout()
    }

    /// Forwards a request, and notes how that went.
    pub(super) async fn attempt(
        &self,
        head: &Parts,
        body: Bytes,
        streams: bool,
        within: Duration,
    ) -> Result<Response, Unserved> {
        let started = Instant::now();
        let outcome = self.http.attempt(head, body, streams, within).await;
        match &outcome {
            Ok(response) if is_failure(response.status()) => self.failed(),
            // Not the upstream's fault, or its connection has switched to another protocol.
            Err(Unserved { reached: Reached::End, .. }) => {}
            // A timeout, but earlier attempts had used up most of the time.
            Err(_) if within < self.response_timeout() / 2 && started.elapsed() >= within => self.failed.increment(1),
            Err(_) => self.failed(),
            Ok(_) => {
                self.served.increment(1);
                self.condition.succeeded();
            }
        }
        outcome
    }

    fn failed(&self) {
        self.failed.increment(1);
        if let Some(time) = self.condition.failed() {
            self.ejected.increment(1);
            tracing::warn!(
                upstream = self.config.name,
                seconds = time.as_secs(),
                "the upstream is ejected after failures in a row; until then, others get its requests"
            );
        }
    }

    /// Requests the path of its health, and notes the result.
    pub(super) async fn check(&self, path: &PathAndQuery, within: Duration) {
        let problem = self.http.probe(path, within).await.err();
        let upstream = &self.config.name;
        match (self.condition.checked(problem.is_none()), problem) {
            (Some(true), _) => tracing::info!(upstream, "the upstream is healthy again"),
            (Some(false), problem) => {
                tracing::warn!(upstream, problem, "the upstream's health checks fail; others get its requests");
            }
            (None, Some(problem)) => tracing::debug!(upstream, problem, "a health check of the upstream failed"),
            (None, None) => {}
        }
    }

    /// Records whether it gets requests.
    pub(super) fn record(&self) {
        gauge!(
            "metering_upstream_out",
            "1 while an upstream is ejected or its health checks fail, so that others get its requests",
            "upstream" => self.config.name.clone()
        )
        .set(if self.condition.is_out() { 1.0 } else { 0.0 });
    }
}

/// Whether a response with this status counts as a failure of the upstream, although it may be passed on. 501 and 505
/// are about the request.
fn is_failure(status: StatusCode) -> bool {
    status.is_server_error() && !matches!(status, StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED)
}
