//! Plans on sale.

use http::StatusCode;
use metering_core::wire::{ErrorBody, PlansDocument};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};

/// Plans on sale and the chains they are paid on
///
/// Only active plans on configured chains, in display order.
#[utoipa::path(get, path = "/credits/plans", tag = "plans", responses(
    (status = 200, description = "The plans", body = PlansDocument),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn plans(app: &App, _: Request) -> Result<Reply, Problem> {
    Ok(json(StatusCode::OK, &*app.service.plans().await?))
}
