//! Operators: lists, creates and revokes them, and gives them new tokens.

use http::StatusCode;
use metering_core::Error;
use metering_core::operators::{OperatorName, Role};
use metering_core::wire::ErrorBody;
use metering_core::wire::admin::{
    CreateOperatorRequest, CreatedOperatorDocument, OperatorDocument, OperatorsDocument, ReasonRequest,
};

use super::app::AdminApp;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};

/// All operators, sorted by name
#[utoipa::path(get, path = "/admin/operators", tag = "operators", security(("operator" = [])), responses(
    (status = 200, description = "Operators", body = OperatorsDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn operators(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let operators = app.administration.operators().await?;
    let operators = operators.iter().map(OperatorDocument::from).collect();
    Ok(json(StatusCode::OK, &OperatorsDocument { operators }))
}

/// Create an operator
///
/// The response has the operator's token. It is in no other response.
#[utoipa::path(post, path = "/admin/operators", tag = "operators", security(("operator" = [])),
    request_body = CreateOperatorRequest, responses(
    (status = 201, description = "The operator and the token", body = CreatedOperatorDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 409, description = "`conflict`: there is or was an operator of that name", body = ErrorBody),
))]
pub(super) async fn create_operator(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let wanted: CreateOperatorRequest = app.read(&request).await?;
    let action = app.action(&request, &wanted.reason).await?;
    let name: OperatorName = wanted.name.trim().parse().map_err(|error| Error::field("name", error))?;
    let role: Role = wanted.role.parse().map_err(|error| Error::field("role", error))?;
    let (operator, token) = app.administration.create_operator(&action, name, role).await?;
    let operator = OperatorDocument::from(&operator);
    Ok(json(StatusCode::CREATED, &CreatedOperatorDocument { token: token.into(), operator }))
}

/// Give an operator a new token
///
/// The old token is refused from now on, and the operator's sessions end. The response has the new token. It is in no other
/// response.
#[utoipa::path(post, path = "/admin/operators/{name}/rotate-token", tag = "operators", security(("operator" = [])),
    request_body = ReasonRequest, params(("name" = String, Path, description = "The operator's name")), responses(
    (status = 200, description = "The operator and the new token", body = CreatedOperatorDocument),
    (status = 404, description = "`not_found`", body = ErrorBody),
    (status = 409, description = "`conflict`: the operator is revoked", body = ErrorBody),
))]
pub(super) async fn rotate_operator_token(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    let name = request.parameter(0, "name")?;
    let (operator, token) = app.administration.rotate_operator_token(&action, &name).await?;
    let operator = OperatorDocument::from(&operator);
    Ok(json(StatusCode::OK, &CreatedOperatorDocument { token: token.into(), operator }))
}

/// Revoke an operator
///
/// The token is refused from now on, and the operator's sessions end. Revoking again changes nothing.
#[utoipa::path(post, path = "/admin/operators/{name}/revoke", tag = "operators", security(("operator" = [])),
    request_body = ReasonRequest, params(("name" = String, Path, description = "The operator's name")), responses(
    (status = 200, description = "The operator afterwards", body = OperatorDocument),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn revoke_operator(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    let operator = app.administration.revoke_operator(&action, &request.parameter(0, "name")?).await?;
    Ok(json(StatusCode::OK, &OperatorDocument::from(&operator)))
}
