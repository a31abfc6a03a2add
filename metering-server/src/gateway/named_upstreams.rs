//! The upstreams that routes name: which one gets a request, and which one next if it fails.
//!
//! A request goes on to the next upstream only while no part of a response has been forwarded, and within the time that
//! one upstream has to start its response: an attempt with an idempotency key counts as in progress for that long. If
//! the failed upstream may have got the request, its method must be idempotent, unless the route allows retries.

mod choice;
mod condition;
mod health_check;
mod named_upstream;
mod served_by;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use metering_core::Charged;
use metering_core::catalogue::RouteUpstreams;
use metering_core::charging::HoldId;
use metering_core::wire::ErrorCode;
use tokio::time::Instant;
use url::Url;

use crate::config::{ConfigError, GatewayConfig, UpstreamConfig};
use crate::gateway::forward::Reached;
use crate::gateway::header_names::UPSTREAM_HEADER;
use crate::gateway::request_id::id_in;
use crate::http::{Problem, Response};
use choice::{Candidate, Indices};
use named_upstream::NamedUpstream;
use served_by::ServedBy;

/// All upstreams with names.
#[derive(Debug, Default)]
pub(crate) struct NamedUpstreams {
    all: Vec<Arc<NamedUpstream>>,
    /// How many requests had a choice.
    turns: AtomicU64,
    /// Made for the first request to one of them: it takes half a megabyte.
    served_by: Arc<OnceLock<ServedBy>>,
}

/// The upstreams of a request's route; an extension of the request.
#[derive(Debug, Clone)]
pub(crate) struct RequestUpstreams {
    route: RouteUpstreams,
    all: Arc<NamedUpstreams>,
}

/// The state of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamState {
    pub(crate) name: String,
    pub(crate) is_ejected: bool,
    /// `None` if its health is not checked.
    pub(crate) is_healthy: Option<bool>,
}

impl RequestUpstreams {
    pub(crate) fn new(route: &RouteUpstreams, all: &Arc<NamedUpstreams>) -> Self {
        Self { route: route.clone(), all: Arc::clone(all) }
    }

    /// Forwards a request to them, until one serves it.
    ///
    /// # Errors
    /// A 502, 503 or 504 when none served it.
    pub(crate) async fn serve(&self, head: &Parts, body: Bytes, streams: bool) -> Result<Response, Problem> {
        self.all.serve(&self.route, head, body, streams).await
    }
}

impl NamedUpstreams {
    /// Those of a configuration. An upstream that has not changed keeps its connections and its condition from `before`.
    /// Must be called on a Tokio runtime, which checks their health.
    ///
    /// # Errors
    /// When the system's certificates cannot be read, or the configuration was not checked.
    pub(crate) fn new(
        config: &GatewayConfig,
        public_url: Option<&Url>,
        workers: NonZeroUsize,
        before: &Self,
    ) -> Result<Self, ConfigError> {
        let upstream = |new: &UpstreamConfig| -> Result<_, ConfigError> {
            if let Some(same) = before.all.iter().find(|upstream| upstream.config.is_same(new)) {
                return Ok(Arc::clone(same));
            }
            let upstream = Arc::new(NamedUpstream::new(new.clone(), config, public_url.cloned(), workers)?);
            health_check::start(&upstream)?;
            Ok(upstream)
        };
        let all = config.upstreams.iter().map(upstream).collect::<Result<_, ConfigError>>()?;
        Ok(Self { all, turns: AtomicU64::new(0), served_by: Arc::clone(&before.served_by) })
    }

    async fn serve(
        &self,
        route: &RouteUpstreams,
        head: &Parts,
        body: Bytes,
        streams: bool,
    ) -> Result<Response, Problem> {
        let has_choice = route.names().nth(1).is_some();
        let turn = if has_choice { self.turns.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let out = if has_choice { self.out() } else { Indices::default() };
        let (started, mut tried, mut last) = (Instant::now(), Indices::default(), None);
        // The first response after which the request went on: better than an error, if no other upstream serves it.
        let mut kept = None;
        while let Some(index) = choice::next(route.steps(), |name| self.find(name), tried, out, turn) {
            tried.insert(index);
            let upstream = &self.all[index];
            let is_first = last.is_none() && kept.is_none();
            let used = if is_first { Duration::ZERO } else { started.elapsed() };
            let left = upstream.response_timeout().saturating_sub(used);
            if left.is_zero() && !is_first {
                break;
            }
            let own = own_request(&upstream.config.name, head, &body);
            let (head, body) = own.as_deref().map_or((head, &body), |(head, body)| (head, body));
            let unserved = match upstream.attempt(head, body.clone(), streams, left).await {
                Ok(mut response) => {
                    response.headers_mut().insert(UPSTREAM_HEADER, upstream.header.clone());
                    if !route.goes_on_after(response.status().as_u16()) {
                        return Ok(response);
                    }
                    kept.get_or_insert(response);
                    continue;
                }
                Err(unserved) => unserved,
            };
            let goes_on = match unserved.reached {
                Reached::Nowhere => true,
                Reached::Upstream => head.method.is_idempotent() || route.retries(),
                Reached::End => false,
            };
            let code = unserved.problem.code().as_str();
            tracing::debug!(upstream = upstream.config.name, code, goes_on, "an upstream did not serve a request");
            last = Some(unserved.problem);
            if !goes_on {
                break;
            }
        }
        if let Some(response) = kept {
            return Ok(response);
        }
        Err(last.unwrap_or_else(|| {
            // A catalogue with unknown names is not served, so this is a request across a reload.
            let message = "The service behind this route was just removed. Nothing was charged; try again.";
            Problem::new(ErrorCode::UpstreamUnavailable, message).retry_after(1)
        }))
    }

    fn find(&self, name: &str) -> Option<Candidate> {
        let index = self.all.iter().position(|upstream| upstream.config.name == *name)?;
        Some(Candidate { index, weight: self.all[index].config.weight })
    }

    /// Those that should get no requests.
    fn out(&self) -> Indices {
        let mut out = Indices::default();
        for (index, upstream) in self.all.iter().enumerate() {
            if upstream.condition.is_out() {
                out.insert(index);
            }
        }
        out
    }

    /// Records which upstream served a request, if its response names it. Call it once the response has its headers.
    pub(crate) fn note(&self, response: &Response) {
        if self.all.is_empty() {
            return;
        }
        let name = response.headers().get(UPSTREAM_HEADER).and_then(|name| name.to_str().ok());
        if let Some((name, id)) = name.zip(id_in(response.headers())) {
            self.served_by.get_or_init(ServedBy::default).note(id, name);
        }
    }

    /// Which upstream served one of the last requests to this process.
    pub(crate) fn served(&self, id: HoldId) -> Option<&str> {
        self.served_by.get()?.find(id, self.all.iter().map(|upstream| upstream.config.name.as_str()))
    }

    /// The state of each.
    pub(crate) fn states(&self) -> Vec<UpstreamState> {
        let state = |upstream: &Arc<NamedUpstream>| UpstreamState {
            name: upstream.config.name.clone(),
            is_ejected: upstream.condition.is_ejected(),
            is_healthy: upstream.config.health.as_ref().map(|_| !upstream.condition.is_unhealthy()),
        };
        self.all.iter().map(state).collect()
    }

    /// Records in the metrics which get requests.
    pub(crate) fn record(&self) {
        self.all.iter().for_each(|upstream| upstream.record());
    }
}

/// The request as this upstream gets it, if it has another name for the model.
fn own_request(upstream: &str, head: &Parts, body: &Bytes) -> Option<Box<(Parts, Bytes)>> {
    let charged = head.extensions.get::<Charged>()?;
    let (head, own_body) = charged.request_for(upstream, head, body)?;
    Some(Box::new((head, own_body.map_or_else(|| body.clone(), Bytes::from))))
}

#[cfg(test)]
mod tests;
