//! Balance and usage of the caller's account.

use http::{HeaderMap, StatusCode};
use metering_core::wire::{ActivityDocument, BalanceDocument, ByEndpointDocument, ErrorBody, UsageSummary};

use crate::access::credentials;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::query::number;
use crate::http::{Problem, Reply, json};

/// The account and its balance
///
/// Works at any balance, including zero and negative ones.
#[utoipa::path(get, path = "/credits/balance", tag = "account", security(("bearer" = []), ("api_key" = [])), responses(
    (status = 200, description = "The account", body = BalanceDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn balance(app: &App, request: Request) -> Result<Reply, Problem> {
    let document = app.service.balance(credentials::key(&request.headers)?.as_ref()).await?;
    Ok(json(StatusCode::OK, &document))
}

/// Recent activity, newest first
#[utoipa::path(get, path = "/credits/usage", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("limit" = Option<u32>, Query, description = "Maximum number of entries", minimum = 1, maximum = 1000, example = 100),
), responses(
    (status = 200, description = "Recent activity", body = ActivityDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn usage(app: &App, request: Request) -> Result<Reply, Problem> {
    let key = credentials::key(&request.headers)?;
    let document = match number(&request.query, "limit", 100) {
        Ok(limit) => app.service.activity(key.as_ref(), limit).await?,
        Err(error) => return Err(after_authentication(app, &request.headers, error).await),
    };
    Ok(json(StatusCode::OK, &document))
}

/// Usage by day and by route
///
/// UTC days; the window is today and the days before it. Days, routes and balance are read in one snapshot and add up
/// exactly.
#[utoipa::path(get, path = "/credits/usage/summary", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("days" = Option<u32>, Query, description = "Days in the window, 7 by default", minimum = 1, maximum = 90, example = 30),
), responses(
    (status = 200, description = "The summary", body = UsageSummary),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn usage_summary(app: &App, request: Request) -> Result<Reply, Problem> {
    let key = credentials::key(&request.headers)?;
    let document = match number(&request.query, "days", 7) {
        Ok(days) => app.service.usage_summary(key.as_ref(), days).await?,
        Err(error) => return Err(after_authentication(app, &request.headers, error).await),
    };
    Ok(json(StatusCode::OK, &document))
}

/// Usage by route
#[utoipa::path(get, path = "/credits/usage/by-endpoint", tag = "account", security(("bearer" = []), ("api_key" = [])), params(
    ("days" = Option<u32>, Query, description = "Days in the window, 30 by default", minimum = 1, maximum = 90, example = 30),
    ("limit" = Option<u32>, Query, description = "Maximum number of routes, 50 by default", minimum = 1, maximum = 1000, example = 50),
), responses(
    (status = 200, description = "Routes by credits", body = ByEndpointDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn usage_by_endpoint(app: &App, request: Request) -> Result<Reply, Problem> {
    let key = credentials::key(&request.headers)?;
    let document = match (number(&request.query, "days", 30), number(&request.query, "limit", 50)) {
        (Ok(days), Ok(limit)) => app.service.usage_by_endpoint(key.as_ref(), days, limit).await?,
        (Err(error), _) | (_, Err(error)) => return Err(after_authentication(app, &request.headers, error).await),
    };
    Ok(json(StatusCode::OK, &document))
}

/// Authenticates first, so that a caller without a live key gets 401 before any other error.
pub(super) async fn after_authentication(app: &App, headers: &HeaderMap, error: metering_core::Error) -> Problem {
    let key = match credentials::key(headers) {
        Ok(key) => key,
        Err(refused) => return refused.into(),
    };
    match app.service.authenticate(key.as_ref()).await {
        Ok(_) => error.into(),
        Err(refused) => refused.into(),
    }
}
