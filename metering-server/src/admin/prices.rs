//! Price versions: lists them, applies a catalogue on all nodes, and cancels one that has not taken effect.

use http::StatusCode;
use metering_core::prices::PriceNumber;
use metering_core::wire::ErrorBody;
use metering_core::wire::admin::{ApplyCatalogueRequest, PriceVersionDocument, PriceVersionsDocument, ReasonRequest};
use metering_core::{Catalogue, Error, Timestamp};

use super::app::AdminApp;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};
use crate::run::conflict;

/// The path of [`apply`].
pub(super) const APPLY: &str = "/admin/catalogue/apply";

/// The catalogues that were, are or will be in force
#[utoipa::path(get, path = "/admin/catalogue/versions", tag = "catalogue", security(("operator" = [])), responses(
    (status = 200, description = "Price versions, newest first", body = PriceVersionsDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn versions(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    Ok(json(StatusCode::OK, &app.administration.price_versions().await?))
}

/// The catalogue of a price version
#[utoipa::path(get, path = "/admin/catalogue/versions/{number}", tag = "catalogue", security(("operator" = [])), params(
    ("number" = u32, Path, description = "The version's number"),
), responses(
    (status = 200, description = "The catalogue file, as a JSON string", body = String),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn catalogue(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let text = app.administration.price_catalogue(number(&request)?).await?;
    Ok(json(StatusCode::OK, &&*text))
}

/// Have all nodes serve a catalogue from a time on
///
/// From then on, nodes no longer take the file that their configuration names.
#[utoipa::path(post, path = "/admin/catalogue/apply", tag = "catalogue", security(("operator" = [])),
    request_body = ApplyCatalogueRequest, responses(
    (status = 200, description = "The price version", body = PriceVersionDocument),
    (status = 400, description = "`validation_failed`: the catalogue is not valid, or the time is too soon", body = ErrorBody),
    (status = 409, description = "`conflict`: the same catalogue is in force then, or another one takes effect then",
        body = ErrorBody),
))]
pub(super) async fn apply(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let wanted: ApplyCatalogueRequest = app.read(&request).await?;
    let action = app.action(&request, &wanted.reason).await?;
    let at = wanted.at.as_deref().map(str::parse::<Timestamp>).transpose();
    let at = at.map_err(|error| Error::field("at", error))?;
    // What this server cannot serve, the others cannot either.
    let read = Catalogue::from_json(&wanted.catalogue).map_err(|error| Error::field("catalogue", error))?;
    if let Some(problem) = conflict(&read) {
        return Err(Error::field("catalogue", problem).into());
    }
    Ok(json(StatusCode::OK, &app.administration.apply_catalogue(&action, &wanted.catalogue, at).await?))
}

/// Cancel a price version that has not taken effect
#[utoipa::path(post, path = "/admin/catalogue/versions/{number}/cancel", tag = "catalogue", security(("operator" = [])),
    request_body = ReasonRequest, params(("number" = u32, Path, description = "The version's number")), responses(
    (status = 200, description = "The cancelled version", body = PriceVersionDocument),
    (status = 404, description = "`not_found`", body = ErrorBody),
    (status = 409, description = "`conflict`: it has taken effect", body = ErrorBody),
))]
pub(super) async fn cancel(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    Ok(json(StatusCode::OK, &app.administration.cancel_catalogue(&action, number(&request)?).await?))
}

fn number(request: &Request) -> Result<PriceNumber, Problem> {
    request.parameter(0, "number").map(PriceNumber)
}
