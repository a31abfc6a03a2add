//! Requests whose credits are held: those of an account, and any one by its id.

use http::StatusCode;
use metering_core::charging::HoldId;
use metering_core::wire::ErrorBody;
use metering_core::wire::admin::{AccountRequestDocument, AccountRequestsDocument};

use super::app::AdminApp;
use super::reports::limit;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};

/// The requests of an account whose credits are held now, newest first
///
/// Their cost is not known yet.
#[utoipa::path(get, path = "/admin/accounts/{id}/requests", tag = "accounts", security(("operator" = [])), params(
    ("id" = String, Path, description = "The account's id"),
    ("limit" = Option<u32>, Query, description = "Maximum number of requests, 100 by default", minimum = 1, maximum = 1000),
), responses(
    (status = 200, description = "Requests", body = AccountRequestsDocument),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn held_requests(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let limit = limit(&request.query, 100, 1_000)?;
    Ok(json(StatusCode::OK, &app.administration.held_requests(&request.parameter(0, "id")?, limit).await?))
}

/// A request whose credits are or were held
///
/// Of any account. A settled request is kept for a day.
#[utoipa::path(get, path = "/admin/requests/{id}", tag = "accounts", security(("operator" = [])), params(
    ("id" = String, Path, description = "The request's id, from the header `X-BDS-Request-Id`"),
), responses(
    (status = 200, description = "The request", body = AccountRequestDocument),
    (status = 400, description = "`validation_failed`: not the id of a request", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn held_request(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let id: HoldId = request.parameter(0, "id")?;
    Ok(json(StatusCode::OK, &app.administration.request(&id).await?))
}
