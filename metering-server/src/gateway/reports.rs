//! Requests priced by usage: reads what their responses report, and settles their holds.
//!
//! Each is served by a separate task, which outlives the client's connection. So when the client has disconnected, the
//! rest of the response is still read for its report, and a hold is always settled.

mod hidden;
mod relay;
mod request;
mod rest;
mod settling;
mod trailers;
mod unreported;
mod whole;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, header};
use http_body::Body;
use metering_core::catalogue::{BodyEnd, Settlement, UsagePrice};
use metering_core::{Charged, Error};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::GatewayConfig;
use crate::gateway::header_names::UPSTREAM_HEADER;
use crate::http::{BodyShare, Problem, Response};
use request::{HeldRequest, Reply};
use rest::{Bounds, Unattended};
use settling::Settling;
use unreported::Unreported;

pub(super) use hidden::Hides;
pub(super) use trailers::{DeclaredTrailers, are_wanted};

/// How long a shutdown waits for tasks to settle.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The requests priced by usage that are being served.
#[derive(Debug)]
pub(crate) struct Reports {
    tasks: TaskTracker,
    stop: CancellationToken,
    bounds: Bounds,
    unattended: Arc<Unattended>,
    silence: Duration,
    unreported: Arc<Unreported>,
}

/// A request priced by usage.
pub(super) struct ByUsage {
    pub(super) charged: Charged,
    pub(super) price: Arc<UsagePrice>,
    /// Whether its client reads trailers.
    pub(super) wants_trailers: bool,
    /// Events that its client does not get.
    pub(super) hides: Option<Hides>,
    /// The length of its body in bytes.
    pub(super) request_bytes: u64,
    /// The part of the memory budget that the response may use.
    pub(super) share: BodyShare,
}

impl Reports {
    pub(super) fn new(config: &GatewayConfig) -> Self {
        Self {
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            bounds: Bounds {
                time: config.report_after_disconnect.duration(),
                bytes: config.report_after_disconnect_bytes,
            },
            unattended: Arc::new(Unattended::new(
                config.report_after_disconnect_requests,
                config.report_after_disconnect_requests_per_account,
            )),
            silence: config.upstream_timeout.duration(),
            unreported: Arc::default(),
        }
    }

    /// Serves a request: passes the response that `fetching` gets on to the client, and captures what it reports.
    ///
    /// # Errors
    /// The upstream's problem, once the hold is released.
    pub(super) async fn serve<F>(&self, request: ByUsage, fetching: F) -> Result<Response, Problem>
    where
        F: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        let ByUsage { charged, price, wants_trailers, hides, request_bytes, share } = request;
        let request = HeldRequest {
            settling: Settling {
                charged,
                price,
                is_error: false,
                request_bytes,
                unreported: Arc::clone(&self.unreported),
            },
            wants_trailers,
            hides,
            stop: self.stop.clone(),
            bounds: self.bounds,
            silence: self.silence,
            share,
            unattended: Arc::clone(&self.unattended),
            place: None,
        };
        let (reply, response) = oneshot::channel();
        self.tasks.spawn(run(request, fetching, reply));
        // Without a reply, the task has panicked.
        response.await.unwrap_or_else(|_| Err(Error::Internal.into()))
    }

    /// The requests whose responses did not report their cost.
    pub(crate) fn unreported(&self) -> &Unreported {
        &self.unreported
    }

    /// Waits until the holds of all requests are settled. At `deadline`, those that are left are settled by what they
    /// reported so far, or else by their rule. Call it when no further request can arrive.
    pub(crate) async fn finish(&self, deadline: Instant) {
        self.tasks.close();
        if timeout_at(deadline, self.tasks.wait()).await.is_ok() {
            return;
        }
        tracing::warn!(requests = self.tasks.len(), "settling requests whose responses did not end in time");
        self.stop.cancel();
        if timeout(SETTLE_TIMEOUT, self.tasks.wait()).await.is_err() {
            tracing::warn!("some requests could not be settled; they are settled when their lease ends");
        }
    }
}

/// Serves a request.
async fn run<F>(mut request: HeldRequest, fetching: F, mut reply: Reply)
where
    F: Future<Output = Result<Response, Problem>> + Send,
{
    let mut fetching = std::pin::pin!(fetching);
    let stop = request.stop.clone();
    let fetched = loop {
        tokio::select! {
            fetched = &mut fetching => break fetched,
            () = stop.cancelled() => break Err(Error::ShuttingDown.into()),
            () = reply.closed(), if request.place.is_none() => {
                if !request.client_has_gone().await {
                    drop(request.settling.settle_as(Settlement::Missing(None), BodyEnd::Abandoned).await);
                    return;
                }
            }
        }
    };
    match fetched {
        Ok(response) => pass_on(request, response, reply).await,
        Err(problem) => request.refuse(problem, reply).await,
    }
}

/// Passes the response on to the client, and settles the hold.
async fn pass_on(mut request: HeldRequest, response: Response, reply: Reply) {
    let status = response.status();
    request.settling.is_error = status.is_client_error() || status.is_server_error();
    let upstream = response.headers().get(UPSTREAM_HEADER).cloned();
    if let Some(upstream) = upstream.as_ref().and_then(|name| name.to_str().ok()) {
        Box::pin(request.settling.served_by(upstream)).await;
    }
    let settling = &request.settling;
    if settling.charged.is_free(status) {
        drop(settling.settle_as(Settlement::Nothing, BodyEnd::Complete).await);
        let _ = reply.send(Ok(response));
        return;
    }
    let in_head = settling.cost_from(response.headers());
    let reader = settling.price.body_reader(content_type(response.headers()));
    let ends_here = response.body().is_end_stream();
    match reader {
        _ if !matches!(in_head, Ok(None)) => {
            drop(settling.settle_from(response.headers()).await);
        }
        Some(reader) if is_encoded(response.headers()) && !reader.counts_bytes() => {
            drop(settling.settle_unreadable("encoded", "its body is encoded").await);
        }
        Some(reader) if ends_here => {
            drop(settling.settle_read(reader, BodyEnd::Complete).await);
        }
        Some(reader) if reader.reads_whole_body() => return whole::pass_on(request, response, reader, reply).await,
        Some(reader) => return relay::pass_on(request, response, Some(reader), Vec::new(), reply).await,
        // A response with a length has no trailers.
        None if settling.reports_in_headers() && !ends_here && response.body().size_hint().exact().is_none() => {
            return relay::pass_on(request, response, None, Vec::new(), reply).await;
        }
        None => drop(settling.settle(Ok(None)).await),
    }
    let _ = reply.send(Ok(response));
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::CONTENT_TYPE)?.to_str().ok()
}

fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONTENT_ENCODING).iter().any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}
