//! Reloading the configuration.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use metering_core::administration::AdminError;
use metering_core::wire::ErrorBody;
use metering_core::wire::admin::{ReasonRequest, ReloadDocument};

use super::app::AdminApp;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};

type Reloading = BoxFuture<'static, Result<ReloadDocument, String>>;

/// Has the server reload its configuration. Clones reload the same server.
#[derive(Clone)]
pub(crate) struct Reload(Arc<dyn Fn() -> Reloading + Send + Sync>);

impl Reload {
    pub(crate) fn by(reload: impl Fn() -> Reloading + Send + Sync + 'static) -> Self {
        Self(Arc::new(reload))
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reload").finish_non_exhaustive()
    }
}

/// Reload the configuration
///
/// Takes the new catalogue, limits, brand, operator, terms and certificate of this node, without closing a connection.
/// All or nothing. Other keys that have changed need a restart, and are listed.
#[utoipa::path(post, path = "/admin/reload", tag = "configuration", security(("operator" = [])), request_body = ReasonRequest,
    responses(
    (status = 200, description = "What is in use now, and what needs a restart", body = ReloadDocument),
    (status = 400, description = "`validation_failed`: the message says what is wrong; nothing has changed", body = ErrorBody),
    (status = 403, description = "`forbidden`: the operator is a viewer", body = ErrorBody),
))]
pub(super) async fn reload(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    let reload = async { (app.reload.0)().await.map_err(AdminError::Invalid) };
    let reloaded = app.administration.reload_configuration(&action, reload).await?;
    Ok(json(StatusCode::OK, &reloaded))
}
