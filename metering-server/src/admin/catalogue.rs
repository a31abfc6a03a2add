//! The catalogue that is served, and a check of another one. Applying one is a call.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use metering_admin::check_catalogue;
use metering_admin::wire::{CatalogueCheckDocument, RehearsalDocument};
use metering_core::wire::{ErrorBody, ErrorCode};
use metering_core::{Catalogue, Error};

use super::app::AdminApp;
use super::reports::bounded;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};
use crate::run::conflict;

/// The path of [`check`].
pub(super) const CHECK: &str = "/admin/catalogue/check";

/// The path of [`rehearse`].
pub(super) const REHEARSE: &str = "/admin/catalogue/rehearse";

/// How many of the routes and accounts that change most a rehearsal lists.
const REHEARSED: usize = 20;

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
    let (service, config) = (Arc::clone(&app.app.service), Arc::clone(&app.config));
    let checked = of_text(request.body, move |text| {
        check_catalogue(service.catalogue(), text, |catalogue| conflict(catalogue, &config))
    });
    Ok(json(StatusCode::OK, &checked.await?))
}

/// Rehearse a catalogue: what past usage would have cost with it, and who would have run out
///
/// Changes nothing. Reads the usage of all accounts in those days, so rehearsals wait for each other.
#[utoipa::path(post, path = "/admin/catalogue/rehearse", tag = "catalogue", security(("operator" = [])), params(
    ("days" = Option<u32>, Query, description = "UTC days including today, 30 by default", minimum = 1, maximum = 366),
), request_body(content = String, description = "The text of a catalogue file", content_type = "application/json"), responses(
    (status = 200, description = "What it would have changed", body = RehearsalDocument),
    (status = 400, description = "`validation_failed`: the catalogue is not valid", body = ErrorBody),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn rehearse(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let days = bounded::<30, 366>(&request.query, "days")?;
    let _rehearsing = app.rehearsing.lock().await;
    let new = of_text(request.body, Catalogue::from_json).await?.map_err(|error| Error::field("catalogue", error))?;
    let served = app.app.service.catalogue();
    let document = app.administration.rehearse(&new, Some(served), days, REHEARSED).await?;
    Ok(json(StatusCode::OK, &document))
}

/// The result of `read` for the text of a catalogue. A large one takes many milliseconds, during which the worker would
/// serve no other connection.
async fn of_text<T: Send + 'static>(body: Bytes, read: impl FnOnce(&str) -> T + Send + 'static) -> Result<T, Problem> {
    let reading = tokio::task::spawn_blocking(move || std::str::from_utf8(&body).ok().map(read));
    let read = reading.await.map_err(|error| {
        tracing::error!(%error, "could not read a catalogue");
        Problem::internal()
    })?;
    read.ok_or_else(|| Problem::new(ErrorCode::InvalidJson, "The catalogue is not UTF-8 text."))
}
