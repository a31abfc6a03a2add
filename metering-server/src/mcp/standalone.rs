//! The MCP server as its own process, for a service that runs elsewhere. It has no store.

mod endpoints;
mod resource;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::LocalBoxFuture;
use http::{Method, Request};
use hyper::body::Incoming;
use metering_client::{Client, ServiceUrl};
use metering_core::{Catalogue, ClientSource};
use metrics_exporter_prometheus::PrometheusHandle;
use warp::filters::BoxedFilter;

use super::{Mcp, remote};
use crate::api::Documents;
use crate::api::openapi::Description;
use crate::config::{Config, Surface, needs_gateway};
use crate::front::MCP_PATHS;
use crate::http::{Handler, Problem, Reply, Response, ResponseFuture, Shutdown, Tls, into_response, without_body};
use crate::oauth::Issuer;
use crate::operations::metrics::{self, RequestTimes};
use crate::operations::service_manager;
use crate::run::{Ending, Hangups, RunError, bind, connections, listen_for, workers};
use endpoints::Endpoints;
use resource::ProtectedResource;

/// How often to run the upkeep of the metrics.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The state of such a process.
struct Alone {
    mcp: Mcp,
    endpoints: Arc<Endpoints>,
    routes: BoxedFilter<(Reply,)>,
}

/// Serves until `stop` resolves, like [`run`](crate::run()).
///
/// # Errors
/// When it cannot start.
pub(crate) fn run_alone<'a>(
    config: Config,
    announce: Box<dyn FnOnce(SocketAddr) + 'a>,
    stop: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<Ending, RunError>> {
    Box::pin(run_until(config, announce, stop))
}

async fn run_until(
    config: Config,
    announce: Box<dyn FnOnce(SocketAddr) + '_>,
    stop: LocalBoxFuture<'_, ()>,
) -> Result<Ending, RunError> {
    let gateway = config.mcp.gateway.clone().ok_or_else(|| RunError::Config(needs_gateway()))?;
    let tls = config.tls.as_ref().map(Tls::new).transpose()?;
    let connections = connections(&config);
    let listener = bind("listen", &config.listen, &config, connections, tls.clone()).await?;
    let address = listener.local_address().map_err(|error| RunError::Setup(Box::new(error)))?;
    let admin = match &config.admin_listen {
        Some(address) => Some(bind("admin_listen", address, &config, connections, None).await?),
        None => None,
    };
    let workers = workers(&config)?;
    let service = Client::new(Arc::new(remote(&gateway)?), ClientSource::Mcp);
    let catalogue = match &config.catalogue {
        Some(_) => crate::run::catalogue(&config)?,
        None => fetch_catalogue(&service, &gateway).await?,
    };
    let tools = (&config.mcp.tool_prefix, true);
    let documents = Documents::new(Description::new(&catalogue, &config), &catalogue, tools);
    let documents = documents.map_err(|error| RunError::Setup(Box::new(error)))?;
    let shutdown = Shutdown::new();
    let mcp = Mcp::new(&config, &catalogue, None, address, &shutdown)?;
    let metrics = metrics::install().map_err(|error| RunError::Setup(Box::new(error)))?;
    let metrics_here = admin.is_none();
    let metering = remote(config.mcp.metering.as_ref().unwrap_or(&gateway))?;
    let metering = Client::new(Arc::new(metering), ClientSource::Mcp);
    let resource = ProtectedResource { own: Issuer::new(&config, address), service: metering };
    let endpoints = Arc::new(Endpoints { service, resource, documents, metrics, metrics_here });
    let routes = endpoints.routes();
    let alone = Arc::new(Alone { mcp, endpoints, routes });
    let (watched, interval) = (Arc::clone(&alone), config.mcp.key_check.duration());
    let watching = tokio::spawn(async move { watched.mcp.watch(interval).await });
    let upkeep = tokio::spawn(run_upkeep(alone.endpoints.metrics.clone(), shutdown.clone()));
    let certificates = tls.map(|tls| tokio::spawn(Arc::clone(tls.certificates()).watch(shutdown.clone())));
    let serving = tokio::spawn(listener.serve(handler(&alone), Arc::clone(&workers), shutdown.clone()));
    let administering =
        admin.map(|admin| tokio::spawn(admin.serve(admin_handler(&alone), Arc::clone(&workers), shutdown.clone())));
    let ignoring = tokio::spawn(ignore_hangups(shutdown.clone()));
    announce(address);
    let stop = listen_for(stop);
    let supervising = tokio::spawn(service_manager::supervise(checks(&alone), shutdown.clone()));
    stop.await;
    service_manager::stopping();
    tracing::info!("shutting down: finishing accepted requests");
    shutdown.cancel();
    let tasks = [Some(serving), administering, certificates].into_iter().flatten();
    for task in tasks.chain([ignoring, supervising, watching, upkeep]) {
        if let Err(error) = task.await {
            tracing::error!(%error, "a server task failed");
        }
    }
    workers.stop().await;
    Ok(Ending::Orderly)
}

fn checks(alone: &Arc<Alone>) -> service_manager::Checks {
    let alone = Arc::clone(alone);
    service_manager::Checks {
        not_ready: Box::new(move || {
            let alone = Arc::clone(&alone);
            Box::pin(async move { alone.endpoints.service.get("/health").await.err().map(|error| error.to_string()) })
        }),
        responds: Box::new(|| Box::pin(async {})),
    }
}

/// SIGHUP would otherwise end the process. Nothing else here can be reloaded: changed certificates are noticed anyway.
async fn ignore_hangups(shutdown: Shutdown) {
    let Some(mut hangups) = Hangups::new() else { return };
    loop {
        tokio::select! {
            () = hangups.next() => tracing::warn!("a process that serves only MCP takes a new configuration by a restart"),
            () = shutdown.cancelled() => return,
        }
    }
}

async fn fetch_catalogue(service: &Client, gateway: &str) -> Result<Catalogue, RunError> {
    let shown = gateway.parse::<ServiceUrl>().map(|url| url.to_string()).unwrap_or_default();
    let invalid = |problem: String| {
        let problem =
            format!("cannot fetch the catalogue from {shown}: {problem}; start that service first, or set catalogue");
        RunError::Config(crate::config::ConfigError::Key { key: "mcp.gateway".to_owned(), problem })
    };
    let response = service.get("/endpoints.json").await.map_err(|error| invalid(error.to_string()))?;
    let text = std::str::from_utf8(&response.body).map_err(|error| invalid(error.to_string()))?;
    Catalogue::from_published_json(text).map_err(|error| invalid(error.to_string()))
}

async fn run_upkeep(metrics: PrometheusHandle, shutdown: Shutdown) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(UPKEEP_INTERVAL) => metrics.run_upkeep(),
            () = shutdown.cancelled() => return,
        }
    }
}

fn handler(alone: &Arc<Alone>) -> Handler {
    let (alone, times) = (Arc::clone(alone), Arc::<RequestTimes>::default());
    Arc::new(move |request: Request<Incoming>| -> ResponseFuture {
        let (alone, times) = (Arc::clone(&alone), Arc::clone(&times));
        Box::pin(async move {
            let started = Instant::now();
            let response = alone.respond(request).await;
            times.record(Surface::Mcp, response.status(), started.elapsed());
            response
        })
    })
}

fn admin_handler(alone: &Arc<Alone>) -> Handler {
    let alone = Arc::clone(alone);
    Arc::new(move |request: Request<Incoming>| -> ResponseFuture {
        let alone = Arc::clone(&alone);
        Box::pin(async move {
            into_response(match request.uri().path() {
                "/metrics" => alone.endpoints.metrics(),
                _ => Problem::not_found().into_reply(),
            })
        })
    })
}

impl Alone {
    async fn respond(&self, request: Request<Incoming>) -> Response {
        if MCP_PATHS.contains(&request.uri().path()) {
            return self.mcp.respond(request).await;
        }
        let is_head = request.method() == Method::HEAD;
        let response = endpoints::respond(&self.routes, request).await;
        if is_head { without_body(response) } else { response }
    }
}
