//! The table of endpoints, and the warp filter that dispatches to them.
//!
//! Each endpoint is declared once: method and path in its handler's `utoipa::path`, everything else in its row here.

use std::sync::{Arc, LazyLock};

use http::Method;
use utoipa::OpenApi;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::path::FullPath;

use crate::api;
use crate::api::app::App;
use crate::api::endpoint::{Endpoint, Request};
use crate::http::{Problem, Reply};

/// The row of a handler. The document that its `utoipa::path` generates has the method and the path.
macro_rules! endpoint {
    ($handler:ident) => {{
        #[derive(OpenApi)]
        #[openapi(paths(api::$handler))]
        struct Described;
        Endpoint::new(|app, request| Box::pin(api::$handler(app, request)), Described::openapi)
    }};
}

/// All endpoints of the API. `pages` serves `GET /verify`.
pub(super) static ENDPOINTS: LazyLock<Vec<Endpoint>> = LazyLock::new(|| {
    vec![
        endpoint!(plans).compressed(),
        endpoint!(balance),
        endpoint!(usage).compressed(),
        endpoint!(usage_summary).compressed(),
        endpoint!(usage_by_endpoint).compressed(),
        endpoint!(usage_daily).compressed(),
        endpoint!(usage_csv).compressed(),
        endpoint!(ledger).compressed(),
        endpoint!(ledger_csv).compressed(),
        endpoint!(receipts).compressed(),
        endpoint!(receipt),
        endpoint!(rotate_current_key),
        endpoint!(top_up),
        endpoint!(top_up_quote),
        endpoint!(top_up_quote_status),
        endpoint!(initiate),
        endpoint!(bot_challenge),
        endpoint!(pending),
        endpoint!(status).without_head(),
        endpoint!(approve),
        endpoint!(send_link),
        endpoint!(verify_email),
        endpoint!(quote),
        endpoint!(claim),
        endpoint!(challenge),
        endpoint!(verify),
        endpoint!(recovery_link),
        endpoint!(recover_by_link),
        endpoint!(deduct),
        endpoint!(lookup),
        endpoint!(health).everywhere(),
        endpoint!(ready).everywhere(),
        endpoint!(metrics).everywhere().compressed(),
        endpoint!(openapi_json).everywhere(),
        endpoint!(catalogue).everywhere(),
    ]
});

/// Whether the API has this path, with any method. A trailing slash makes no difference.
pub(crate) fn is_path(path: &str) -> bool {
    at(path).next().is_some()
}

/// Whether the path of an endpoint begins with this segment.
pub(crate) fn has_first_segment(segment: &str) -> bool {
    ENDPOINTS.iter().any(|endpoint| endpoint.path.split('/').nth(1) == Some(segment))
}

/// Whether every process serves the path, whichever surfaces it is configured for. A trailing slash makes a difference.
pub(crate) fn is_everywhere(path: &str) -> bool {
    ENDPOINTS.iter().any(|endpoint| endpoint.is_everywhere && endpoint.path == path)
}

/// Whether a path supports `HEAD`.
pub(crate) fn takes_head(path: &str) -> bool {
    at(path).any(|endpoint| endpoint.takes_head)
}

/// Whether responses of a path may be compressed.
pub(crate) fn is_compressed(path: &str) -> bool {
    at(path).any(|endpoint| endpoint.is_compressed)
}

/// The endpoints at a path, one per method.
fn at(path: &str) -> impl Iterator<Item = &'static Endpoint> {
    let path = path.strip_suffix('/').unwrap_or(path);
    ENDPOINTS.iter().filter(move |endpoint| endpoint.path == path)
}

/// Serves every endpoint, and responds to unmatched requests. Never rejects.
pub(crate) fn routes(app: Arc<App>) -> BoxedFilter<(Result<Reply, Problem>,)> {
    let request = warp::ext::optional()
        .and(warp::header::headers_cloned())
        .and(warp::query::raw().or(warp::any().map(String::new)).unify())
        .and(warp::body::bytes())
        .map(|client, headers, query, body| Request { client, headers, query, body });
    warp::method()
        .and(warp::path::full())
        .and(request)
        .then(move |method: Method, path: FullPath, request| {
            let app = Arc::clone(&app);
            async move {
                match at(path.as_str()).find(|endpoint| endpoint.method == method) {
                    Some(endpoint) => (endpoint.handler)(&app, request).await,
                    None => Err(unmatched(path.as_str())),
                }
            }
        })
        .boxed()
}

/// The error for an unmatched request: 405 for a known path, 404 for an unknown one.
fn unmatched(path: &str) -> Problem {
    let mut methods = Vec::new();
    for endpoint in at(path) {
        methods.push(endpoint.method.as_str());
        methods.extend(endpoint.takes_head.then_some("HEAD"));
    }
    if methods.is_empty() { Problem::not_found() } else { Problem::method_not_allowed(&methods) }
}
