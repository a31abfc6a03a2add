//! Balance and usage of the caller's account.

use http::StatusCode;
use metering_core::access::Scope;
use metering_core::wire::{
    ActivityDocument, BalanceDocument, ByEndpointDocument, ErrorBody, UsageSummary, VolumesDocument,
};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::query::saturating;
use crate::http::{Problem, Reply, json};

/// The account and its balance
///
/// Works at any balance, including zero and negative ones.
#[utoipa::path(get, path = "/credits/balance", tag = "account", security(("bearer" = []), ("api_key" = [])), responses(
    (status = 200, description = "The account", body = BalanceDocument),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn balance(app: &App, request: Request) -> Result<Reply, Problem> {
    let document = app.service.balance(&request.sender()?).await?;
    Ok(json(StatusCode::OK, &document))
}

/// Recent activity, newest first
#[utoipa::path(get, path = "/credits/usage", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("limit" = Option<u32>, Query, description = "Maximum number of entries; a number outside of the range is cut to it", minimum = 1, maximum = 1000, example = 100),
), responses(
    (status = 200, description = "Recent activity", body = ActivityDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn usage(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = request.sender()?;
    let document = match saturating(&request.query, "limit", 100) {
        Ok(limit) => app.service.activity(&sender, limit).await?,
        Err(error) => return Err(after_authorization(app, &request, Scope::Read, error).await),
    };
    Ok(json(StatusCode::OK, &document))
}

/// Usage by day and by route
///
/// UTC days; the window is today and the days before it. Days, routes and balance are read in one snapshot and add up
/// exactly.
#[utoipa::path(get, path = "/credits/usage/summary", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("days" = Option<u32>, Query, description = "Days in the window, 7 by default; a number outside of the range is cut to it", minimum = 1, maximum = 90, example = 30),
), responses(
    (status = 200, description = "The summary", body = UsageSummary),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn usage_summary(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = request.sender()?;
    let document = match saturating(&request.query, "days", 7) {
        Ok(days) => app.service.usage_summary(&sender, days).await?,
        Err(error) => return Err(after_authorization(app, &request, Scope::Read, error).await),
    };
    Ok(json(StatusCode::OK, &document))
}

/// Usage by route
#[utoipa::path(get, path = "/credits/usage/by-endpoint", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("days" = Option<u32>, Query, description = "Days in the window, 30 by default; a number outside of the range is cut to it", minimum = 1, maximum = 90, example = 30),
    ("limit" = Option<u32>, Query, description = "Maximum number of routes, 50 by default", minimum = 1, maximum = 1000, example = 50),
), responses(
    (status = 200, description = "Routes by credits", body = ByEndpointDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn usage_by_endpoint(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = request.sender()?;
    let document = match (saturating(&request.query, "days", 30), saturating(&request.query, "limit", 50)) {
        (Ok(days), Ok(limit)) => app.service.usage_by_endpoint(&sender, days, limit).await?,
        (Err(error), _) | (_, Err(error)) => return Err(after_authorization(app, &request, Scope::Read, error).await),
    };
    Ok(json(StatusCode::OK, &document))
}

/// Requests of the month to routes with volume tiers
///
/// Calendar months in UTC. Requests are counted per account, whichever key they came with; refunded ones are not
/// counted.
#[utoipa::path(get, path = "/credits/usage/volumes", tag = "account", security(("bearer" = []), ("api_key" = [])), responses(
    (status = 200, description = "The routes with volume tiers", body = VolumesDocument),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn usage_volumes(app: &App, request: Request) -> Result<Reply, Problem> {
    let document = app.service.usage_volumes(&request.sender()?).await?;
    Ok(json(StatusCode::OK, &document))
}

/// Checks the key first, so that a caller without a live key that has the scope learns nothing else.
pub(super) async fn after_authorization(
    app: &App,
    request: &Request,
    scope: Scope,
    error: impl Into<Problem>,
) -> Problem {
    let sender = match request.sender() {
        Ok(sender) => sender,
        Err(refused) => return refused.into(),
    };
    match app.service.authorize(&sender, scope).await {
        Ok(_) => error.into(),
        Err(refused) => refused.into(),
    }
}
