//! The endpoints of a process that serves only MCP, in addition to the tools: health, metrics, and descriptions of the
//! service.
//!
//! These are warp filters. Their cost does not matter: only probes, and clients as they start, send these requests.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use metering_client::Client;
use metering_core::wire::ErrorCode;
use metrics_exporter_prometheus::PrometheusHandle;
use tower_service::Service;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::path::{FullPath, Tail};

use crate::api::{self, Documents};
use crate::http::{Problem, Reply, Response, bytes, into_response, json, no_oauth};
use crate::mcp::standalone::resource::ProtectedResource;

/// The state of the endpoints.
pub(super) struct Endpoints {
    /// The service behind the tools.
    pub(super) service: Client,
    /// The tools, as OAuth clients see them.
    pub(super) resource: ProtectedResource,
    pub(super) documents: Documents,
    pub(super) metrics: PrometheusHandle,
    /// Whether `/metrics` is served on the address of the tools.
    pub(super) metrics_here: bool,
}

/// Responds to a request that is not for the tools.
pub(super) async fn respond<B>(routes: &BoxedFilter<(Reply,)>, request: Request<B>) -> Response {
    // `CONNECT host:port` and `OPTIONS *` have no path, and warp's filters panic on the former.
    if !request.uri().path().starts_with('/') {
        return into_response(Problem::not_found().into_reply());
    }
    let responding = warp::service(routes.clone()).call(request.map(|_| Empty::<Bytes>::new()));
    match responding.await {
        Ok(response) => response.map(|body| body.map_err(Into::into).boxed_unsync()),
        Err(never) => match never {},
    }
}

impl Endpoints {
    /// Serves the endpoints, and responds to requests for other paths. Never rejects.
    pub(super) fn routes(self: &Arc<Self>) -> BoxedFilter<(Reply,)> {
        let endpoints = Arc::clone(self);
        let endpoints = warp::any().map(move || Arc::clone(&endpoints));
        let headers = warp::header::headers_cloned();
        let health = warp::path!("health").map(healthy);
        let ready = warp::path!("ready").and(endpoints.clone()).then(Self::readiness);
        let metrics = warp::path!("metrics").and(endpoints.clone()).map(|endpoints: Arc<Self>| {
            if endpoints.metrics_here { endpoints.metrics() } else { Problem::not_found().into_reply() }
        });
        let openapi = warp::path!("openapi.json")
            .and(endpoints.clone())
            .and(headers)
            .map(|endpoints: Arc<Self>, headers: HeaderMap| endpoints.documents.openapi(None, &headers));
        let catalogue = warp::path!("endpoints.json")
            .and(endpoints.clone())
            .and(headers)
            .map(|endpoints: Arc<Self>, headers: HeaderMap| endpoints.documents.catalogue(&headers));
        let resource = warp::path!(".well-known" / "oauth-protected-resource" / ..)
            .and(warp::path::tail())
            .and(endpoints)
            .and(headers)
            .then(|path: Tail, endpoints: Arc<Self>, headers: HeaderMap| async move {
                endpoints.resource.respond(path.as_str(), &headers).await
            });
        let served = health.or(ready).unify().or(metrics).unify().or(openapi).unify().or(catalogue).unify();
        let served = served.or(resource).unify();
        let unserved = warp::method()
            .and(warp::path::full())
            .map(|method: Method, path: FullPath| unserved(&method, path.as_str()));
        warp::get().or(warp::head()).unify().and(served).or(unserved).unify().boxed()
    }

    /// The metrics of this process.
    pub(super) fn metrics(&self) -> Reply {
        self.metrics.run_upkeep();
        let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        bytes(StatusCode::OK, text, self.metrics.render().into())
    }

    /// Ready when the service behind the tools is alive.
    async fn readiness(self: Arc<Self>) -> Reply {
        match self.service.get("/health").await {
            Ok(_) => healthy(),
            Err(error) => {
                tracing::error!(%error, "the service behind the tools cannot be reached");
                let message = "The service behind the tools cannot be reached; the server's log has the cause.";
                Problem::new(ErrorCode::UpstreamUnavailable, message).retry_after(1).into_reply()
            }
        }
    }
}

fn healthy() -> Reply {
    json(StatusCode::OK, &api::HealthDocument::OK)
}

/// The response to a request that no endpoint takes. As above, a trailing slash makes no difference.
fn unserved(method: &Method, path: &str) -> Reply {
    let is_endpoint = api::is_everywhere(path.strip_suffix('/').unwrap_or(path));
    if is_endpoint && !matches!(*method, Method::GET | Method::HEAD) {
        return Problem::method_not_allowed(&["GET", "HEAD"]).into_reply();
    }
    no_oauth(path).unwrap_or_else(|| Problem::not_found().into_reply())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_methods_are_not_allowed_with_or_without_a_trailing_slash() {
        // method, path, status
        let table = [
            (Method::POST, "/health", 405),
            (Method::POST, "/health/", 405),
            (Method::OPTIONS, "/openapi.json/", 405),
            (Method::POST, "/health//", 404),
            (Method::POST, "/credits/balance", 404),
            (Method::GET, "/health//", 404),
            (Method::GET, "/", 404),
        ];
        for (method, path, status) in table {
            assert_eq!(unserved(&method, path).status(), status, "{method} {path}");
        }
    }
}
