//! Endpoints for operators and monitoring.

use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};
use metering_client::tools::{TOOL_PREFIX_HEADER, ToolPrefix};
use metering_core::wire::ErrorBody;
use metering_core::{Catalogue, Service};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::app::App;
use crate::api::openapi::Description;
use crate::endpoints::Request;
use crate::endpoints::query::optional;
use crate::http::{Document, Problem, Reply, bytes, json, with_headers};
use crate::operations::metrics;
use crate::operations::readiness::{NotReady, Parts};

/// The health of the service.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthDocument {
    /// Always true: a service that responds is alive.
    ok: bool,
    /// What responds: `metering-server`.
    service: &'static str,
    /// `ok`.
    status: &'static str,
    /// The program's version.
    version: &'static str,
}

impl HealthDocument {
    pub(crate) const OK: Self =
        Self { ok: true, service: env!("CARGO_PKG_NAME"), status: "ok", version: env!("CARGO_PKG_VERSION") };
}

/// Whether the chains count for readiness.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum ChainsInReadiness {
    /// A chain that cannot be read, or stands still, makes the server not ready.
    #[default]
    Check,
    /// They do not count.
    Ignore,
}

impl FromStr for ChainsInReadiness {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "check" => Ok(Self::Check),
            "ignore" => Ok(Self::Ignore),
            _ => Err("must be check or ignore"),
        }
    }
}

/// How long a scrape may wait for the checks of readiness; Prometheus gives up after ten seconds by default.
const READINESS_TIMEOUT: Duration = Duration::from_secs(9);

/// Liveness check
#[utoipa::path(get, path = "/health", tag = "operations", responses(
    (status = 200, description = "Alive", body = HealthDocument),
))]
pub(crate) async fn health(_: &App, _: Request) -> Result<Reply, Problem> {
    Ok(json(StatusCode::OK, &HealthDocument::OK))
}

/// Readiness check
///
/// Ready means that charges are recorded, the store is writable, this machine's clock agrees with the database's, and
/// the chains that plans are paid on can be read and make progress. With `chains=ignore`, the chains do not count:
/// charges do not need them.
#[utoipa::path(get, path = "/ready", tag = "operations", params(
    ("chains" = inline(Option<ChainsInReadiness>), Query, description = "Whether chains count; they do by default"),
), responses(
    (status = 200, description = "Ready", body = HealthDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `clock_skew`, `chain_unreachable`, `chain_stalled`, \
     `catalogue_unusable`", body = ErrorBody),
))]
pub(crate) async fn ready(app: &App, request: Request) -> Result<Reply, Problem> {
    let chains = optional(&request.query, "chains")?.unwrap_or_default();
    let reason = match chains {
        ChainsInReadiness::Check => app.readiness.not_ready(readiness_parts(app)).await,
        ChainsInReadiness::Ignore => app.readiness.not_ready_to_charge(readiness_parts(app)).await,
    };
    match reason.map(explained) {
        None => Ok(json(StatusCode::OK, &HealthDocument::OK)),
        Some(problem) => Err(problem.retry_after(1)),
    }
}

/// Why the server is not ready, if it is not.
pub(crate) async fn not_ready(app: &App) -> Option<Problem> {
    app.readiness.not_ready(readiness_parts(app)).await.map(explained)
}

fn explained(reason: NotReady) -> Problem {
    let message = match reason {
        NotReady::Store => "The store cannot be written to".to_owned(),
        NotReady::Clock(skew) => format!("This machine's clock is {skew} of the database's"),
        NotReady::Chain(id) => format!("Chain {id} cannot be read"),
        NotReady::Stalled(id) => format!("Chain {id} makes no progress, so payments on it are not credited"),
        NotReady::Prices => "A price version is in force that this server cannot serve; its log says why".to_owned(),
    };
    Problem::new(reason.code(), format!("{message}; the server's log has the cause."))
}

/// What readiness depends on.
pub(crate) fn readiness_parts(app: &App) -> Parts<'_> {
    Parts {
        meter: &app.meter,
        store: &*app.store,
        clock_watch: &app.clock_watch,
        readers: &app.readers,
        progress: &app.progress,
    }
}

/// Prometheus metrics
///
/// Served on the admin address instead, if one is configured.
#[utoipa::path(get, path = "/metrics", tag = "operations", responses(
    (status = 200, description = "Metrics in the text format", body = String, content_type = "text/plain"),
    (status = 404, description = "`not_found`: metrics are served on the admin address", body = ErrorBody),
))]
pub(crate) async fn metrics(app: &App, _: Request) -> Result<Reply, Problem> {
    if !app.metrics_here {
        return Err(Problem::not_found());
    }
    Ok(metrics_reply(app).await)
}

/// The catalogue of metered routes
///
/// The routes, their parameters and their prices, in the format of the catalogue file.
#[utoipa::path(get, path = "/endpoints.json", tag = "descriptions", responses(
    (status = 200, description = "The catalogue", content_type = "application/json"),
))]
pub(crate) async fn catalogue(app: &App, request: Request) -> Result<Reply, Problem> {
    Ok(app.documents.catalogue(&request.headers))
}

/// The documents that describe the service to programs. They depend on the operator's files and change only with a
/// reload, or when offers are made.
#[derive(Debug)]
pub(crate) struct Documents {
    description: Description,
    openapi: Document,
    catalogue: Document,
    tool_prefix: ToolPrefix,
    selling: OnceLock<Option<Selling>>,
}

/// The documents of a service that offers payments with requests.
#[derive(Debug)]
struct Selling {
    openapi: Document,
    manifest: Document,
}

impl Documents {
    /// # Errors
    /// When the description cannot be written as JSON.
    pub(crate) fn new(
        description: Description,
        catalogue: &Catalogue,
        tool_prefix: &ToolPrefix,
    ) -> serde_json::Result<Self> {
        let openapi = Document::new("application/json", description.to_json(catalogue)?);
        let catalogue = Document::new("application/json", catalogue.json().to_owned());
        let (tool_prefix, selling) = (tool_prefix.clone(), OnceLock::new());
        Ok(Self { description, openapi, catalogue, tool_prefix, selling })
    }

    /// The documents of a service that offers payments, once it does: its tokens may be read only after the start.
    fn selling(&self, service: &Service) -> Option<&Selling> {
        if self.selling.get().is_none() && service.offers().is_empty() {
            return None;
        }
        let make = || {
            let manifest = serde_json::to_string(&service.manifest()?);
            let openapi = self.description.with_offers(service);
            let texts = openapi.and_then(|openapi| Ok([openapi, manifest?]));
            let [openapi, manifest] = texts
                .map_err(|error| tracing::error!(%error, "could not describe the offers as JSON"))
                .ok()?
                .map(|text| Document::new("application/json", text));
            Some(Selling { openapi, manifest })
        };
        self.selling.get_or_init(make).as_ref()
    }

    /// What the service sells, for a request with these headers; `None` while it offers nothing.
    pub(crate) fn manifest(&self, service: &Service, headers: &HeaderMap) -> Option<Reply> {
        let manifest = &self.selling(service)?.manifest;
        Some(with_headers(manifest.reply(headers), vec![("cache-control", "public, max-age=60".to_owned())]))
    }

    /// The catalogue, for a request with these headers.
    pub(crate) fn catalogue(&self, headers: &HeaderMap) -> Reply {
        let with = [("cache-control", "public, max-age=60"), (TOOL_PREFIX_HEADER, self.tool_prefix.as_str())];
        with_headers(self.catalogue.reply(headers), with.map(|(name, value)| (name, value.to_owned())).to_vec())
    }

    /// The OpenAPI document, for a request with these headers. With a service, also what it offers.
    pub(crate) fn openapi(&self, service: Option<&Service>, headers: &HeaderMap) -> Reply {
        let selling = service.and_then(|service| self.selling(service));
        let document = selling.map_or(&self.openapi, |selling| &selling.openapi);
        // Caches may store it but must revalidate each time, which costs a 304.
        with_headers(document.reply(headers), vec![("cache-control", "public, no-cache".to_owned())])
    }
}

/// The metrics, for both addresses that may serve them.
pub(crate) async fn metrics_reply(app: &App) -> Reply {
    let reason = match tokio::time::timeout(READINESS_TIMEOUT, app.readiness.not_ready(readiness_parts(app))).await {
        Ok(reason) => reason.map(|reason| reason.code().as_str()),
        Err(_) => Some("timeout"),
    };
    metrics::readiness(reason);
    for (chain_id, reader) in &app.readers {
        metrics::chain_sources(*chain_id, reader.sources());
    }
    let (streams, bodies) = (app.gateway.streams().count(), app.bodies.budget().taken());
    let text = metrics::render(&app.metrics, &app.meter, streams, bodies, app.courier.as_deref());
    bytes(StatusCode::OK, HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"), text.into())
}

/// This OpenAPI document
#[utoipa::path(get, path = "/openapi.json", operation_id = "openapi", tag = "descriptions", responses(
    (status = 200, description = "The OpenAPI document", content_type = "application/json"),
))]
pub(crate) async fn openapi_json(app: &App, request: Request) -> Result<Reply, Problem> {
    Ok(app.documents.openapi(Some(&app.service), &request.headers))
}
