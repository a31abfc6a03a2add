//! The documents that describe the operators' API.

use super::app::AdminApp;
use crate::endpoints::Request;
use crate::http::{Problem, Reply};

/// This OpenAPI document
#[utoipa::path(get, path = "/admin/openapi.json", operation_id = "admin_openapi", tag = "descriptions", responses(
    (status = 200, description = "The OpenAPI document", content_type = "application/json"),
))]
pub(super) async fn openapi_json(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    Ok(app.openapi.reply(&request.headers))
}
