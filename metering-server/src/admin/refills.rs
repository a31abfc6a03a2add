//! Recurring credits.

use http::StatusCode;
use metering_core::wire::ErrorBody;
use metering_core::wire::admin::{ReasonRequest, RefillDocument, RefillRequest};

use super::app::AdminApp;
use super::session::no_content;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};

/// How accounts are refilled
#[utoipa::path(get, path = "/admin/refill", tag = "accounts", security(("operator" = [])), responses(
    (status = 200, description = "The rule for recurring credits", body = RefillDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn refill(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    Ok(json(StatusCode::OK, &RefillDocument { refill: app.administration.refill().await? }))
}

/// Set the refill rule, replacing the current one
///
/// Accounts already processed in the new rule's current period are not refilled again in it.
#[utoipa::path(put, path = "/admin/refill", tag = "accounts", security(("operator" = [])), request_body = RefillRequest,
    responses(
    (status = 200, description = "The rule", body = RefillDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
))]
pub(super) async fn set_refill(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let wanted: RefillRequest = app.read(&request).await?;
    let action = app.action(&request, &wanted.reason).await?;
    let refill = Some(wanted.refill);
    app.administration.set_refill(&action, refill).await?;
    Ok(json(StatusCode::OK, &RefillDocument { refill }))
}

/// Stop refilling accounts
#[utoipa::path(post, path = "/admin/refill/remove", tag = "accounts", security(("operator" = [])),
    request_body = ReasonRequest, responses(
    (status = 204, description = "Accounts are no longer refilled"),
))]
pub(super) async fn remove_refill(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    app.administration.set_refill(&action, None).await?;
    Ok(no_content())
}
