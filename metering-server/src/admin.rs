//! The admin address: the operators' API, their console, and metrics.
//!
//! Clients of this address still have to sign in as an operator, except for metrics and the pages themselves.

mod access;
mod app;
mod attention;
mod audit;
mod call;
mod catalogue;
mod documents;
mod expiring;
mod health;
mod oidc;
mod oidc_sign_in;
mod openapi;
mod payments;
mod person;
mod problem;
mod receipts;
mod reload;
mod reload_handle;
mod reports;
mod routes;
mod session;
mod sessions;
mod shared_lists;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use http_body::Body;
use metering_admin::Call;
use metering_admin::calls::prices::ApplyCatalogue;
use metering_core::FullStore;
use metering_core::wire::ErrorCode;

use crate::api;
use crate::api::app::App;
use crate::config::Config;
use crate::endpoints;
use crate::http::{Document, Problem, Reply, Response, compressed, into_response, without_body};

pub(crate) use app::AdminApp;
pub(crate) use reload_handle::Reload;
use routes::ENDPOINTS;

/// The largest body.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// The largest catalogue to check, rehearse or apply.
const MAX_CATALOGUE_BYTES: usize = 4 * 1024 * 1024;

/// The parts that operators use of a server.
///
/// # Errors
/// When the OpenAPI document cannot be written.
pub(crate) fn assemble(
    app: &Arc<App>,
    store: &Arc<dyn FullStore>,
    config: &Config,
    reload: Reload,
) -> serde_json::Result<Arc<AdminApp>> {
    Ok(Arc::new(AdminApp::new(Arc::clone(app), Arc::clone(store), config, described(config)?, reload)))
}

/// The same parts after a reload: sessions stay open.
///
/// # Errors
/// When the OpenAPI document cannot be written.
pub(crate) fn reassemble(before: &AdminApp, app: &Arc<App>, config: &Config) -> serde_json::Result<Arc<AdminApp>> {
    Ok(Arc::new(before.reconfigured(Arc::clone(app), config, described(config)?)))
}

fn described(config: &Config) -> serde_json::Result<Document> {
    let openapi = openapi::document(config.brand.name.as_str()).to_json()?;
    Ok(Document::new("application/json", openapi))
}

/// Responds to a request on the admin address.
pub(crate) async fn respond<B>(app: &Arc<AdminApp>, request: Request<B>) -> Response
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let is_head = request.method() == Method::HEAD;
    let headers = request.headers().clone();
    // Of the method too: the response to a `POST` to the path of a list may have a secret.
    let method = if is_head { Method::GET } else { request.method().clone() };
    let is_compressed = ENDPOINTS
        .at(request.uri().path())
        .is_some_and(|found| found.endpoints().any(|endpoint| endpoint.is_compressed && endpoint.method == method));
    let response = into_response(app.error_links.link(reply(app, request).await));
    let response = if is_compressed { compressed(response, &headers).await } else { response };
    if is_head { without_body(response) } else { response }
}

async fn reply<B>(app: &Arc<AdminApp>, request: Request<B>) -> Reply
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    if path == "/metrics" {
        return match head.method {
            Method::GET | Method::HEAD => api::metrics_reply(&app.app).await,
            _ => Problem::method_not_allowed(&["GET", "HEAD"]).into_reply(),
        };
    }
    if let Some(page) = app.app.pages.console(&head.method, path, &head.headers) {
        return page;
    }
    let Some(found) = ENDPOINTS.at(path) else {
        let message = "Nothing is at this path; see /admin/openapi.json, or /console in a browser.";
        return Problem::new(ErrorCode::NotFound, message).into_reply();
    };
    let takes_catalogue = [catalogue::CHECK, catalogue::REHEARSE, ApplyCatalogue::PATH].contains(&path);
    let most = if takes_catalogue { MAX_CATALOGUE_BYTES } else { MAX_BODY_BYTES };
    let body = match app.app.bodies.read(body, most, &head.extensions).await {
        Ok(body) => body,
        Err(problem) => return problem.into_reply(),
    };
    let is_head = head.method == Method::HEAD && found.takes_head();
    let method = if is_head { Method::GET } else { head.method.clone() };
    let request = endpoints::Request::new(head, body);
    // In a separate task: an action is finished and logged even if the client hangs up.
    let app = Arc::clone(app);
    let called = app.tasks.clone().spawn(async move { found.call(&app, &method, request).await });
    match called.await {
        Ok(result) => result.unwrap_or_else(Problem::into_reply),
        Err(error) => {
            tracing::error!(%error, "a request on the admin address failed");
            Problem::internal().into_reply()
        }
    }
}
