//! Endpoints for operators and monitoring.

use std::str::FromStr;
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use metering_core::wire::ErrorBody;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::query::optional;
use crate::http::{Problem, Reply, bytes, json};
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
        NotReady::Prices => {
            "A price version is in force that this server cannot serve; its log has the reason".to_owned()
        }
    };
    Problem::new(reason.code(), format!("{message}; the server's log has the cause."))
}

/// The parts that readiness depends on.
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
    app.gateway.named_upstreams().record();
    let (streams, bodies) = (app.gateway.streams().count(), app.bodies.budget().taken());
    let text = metrics::render(&app.metrics, &app.meter, streams, bodies, app.courier.as_deref());
    bytes(StatusCode::OK, HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"), text.into())
}

/// This OpenAPI document
#[utoipa::path(get, path = "/openapi.json", operation_id = "openapi", tag = "descriptions", responses(
    (status = 200, description = "The OpenAPI document", content_type = "application/json"),
))]
pub(crate) async fn openapi_json(app: &App, request: Request) -> Result<Reply, Problem> {
    Ok(app.documents.openapi(Some((&app.service, &app.payments)), &request.headers))
}
