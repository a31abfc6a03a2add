//! Reloading the configuration.

use http::StatusCode;
use metering_admin::AdminError;
use metering_admin::wire::{ReasonRequest, ReloadDocument};
use metering_core::wire::ErrorBody;

use super::app::AdminApp;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};

/// Reload the configuration
///
/// Takes the new catalogue, limits, brand, operator, terms and certificate of this node, without closing a connection.
/// All or nothing. Other keys that have changed need a restart, and are listed.
#[utoipa::path(post, path = "/admin/reload", tag = "configuration", security(("operator" = [])), request_body = ReasonRequest,
    responses(
    (status = 200, description = "What is in use now, and what needs a restart", body = ReloadDocument),
    (status = 400, description = "`validation_failed`: the message has the reason; nothing has changed", body = ErrorBody),
    (status = 403, description = "`forbidden`: the operator is a viewer", body = ErrorBody),
))]
pub(super) async fn reload(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let ReasonRequest { reason } = app.read(&request).await?;
    let action = app.action(&request, &reason).await?;
    let reload = async { app.reload.run().await.map_err(AdminError::Invalid) };
    let reloaded = app.administration.reload_configuration(&action, reload).await?;
    Ok(json(StatusCode::OK, &reloaded))
}
