//! The catalogue that is served, and a check of another one. Applying one is a call.

use std::sync::Arc;

use http::StatusCode;
use metering_admin::check_catalogue;
use metering_admin::wire::CatalogueCheckDocument;
use metering_core::wire::{ErrorBody, ErrorCode};

use super::app::AdminApp;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};
use crate::run::conflict;

/// The path of [`check`].
pub(super) const CHECK: &str = "/admin/catalogue/check";

/// The catalogue that is served
#[utoipa::path(get, path = "/admin/catalogue", tag = "catalogue", security(("operator" = [])), responses(
    (status = 200, description = "The catalogue file", content_type = "application/json"),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn catalogue(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    Ok(app.app.documents.catalogue(&request.headers))
}

/// Check a catalogue, and compare its prices with those that are served
///
/// Changes nothing: a catalogue takes effect when it is applied, or when its file is in place and the server reloads its
/// configuration.
#[utoipa::path(post, path = "/admin/catalogue/check", tag = "catalogue", security(("operator" = [])),
    request_body(content = String, description = "The text of a catalogue file", content_type = "application/json"), responses(
    (status = 200, description = "Whether it is valid, and what would change", body = CatalogueCheckDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn check(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let (service, body) = (Arc::clone(&app.app.service), request.body);
    // A large one takes many milliseconds, in which the worker would serve no other connection.
    let checking = tokio::task::spawn_blocking(move || {
        let text = std::str::from_utf8(&body).ok()?;
        Some(check_catalogue(service.catalogue(), text, conflict))
    });
    let checked = checking.await.map_err(|error| {
        tracing::error!(%error, "could not check a catalogue");
        Problem::internal()
    })?;
    let checked = checked.ok_or_else(|| Problem::new(ErrorCode::InvalidJson, "The catalogue is not UTF-8 text."))?;
    Ok(json(StatusCode::OK, &checked))
}
