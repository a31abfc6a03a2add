//! Events of the caller's account, and the balance below which it gets one.

use http::StatusCode;
use metering_core::access::Scope;
use metering_core::wire::{BalanceAlertDocument, BalanceAlertRequest, ErrorBody, EventsDocument};

use crate::api::account::after_authorization;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::endpoints::query::{number, optional};
use crate::http::{Problem, Reply, json};
use crate::operations::metrics::counted;

/// The account's events, newest first
///
/// Events are kept for 30 days, with or without webhooks. If `next` is not null, more follow: send it as `after`.
#[utoipa::path(get, path = "/events", tag = "webhooks", security(("bearer" = []), ("api_key" = [])), params(
    ("after" = Option<String>, Query, description = "The value of `next` in the previous response"),
    ("limit" = Option<u32>, Query, description = "Maximum number of events, 20 by default", minimum = 1, maximum = 100, example = 20),
), responses(
    (status = 200, description = "Events", body = EventsDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn events(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = request.sender()?;
    let document = match (optional::<String>(&request.query, "after"), number(&request.query, "limit", 20)) {
        (Ok(after), Ok(limit)) => app.service.events(&sender, after.as_deref(), limit).await?,
        (Err(error), _) | (_, Err(error)) => return Err(after_authorization(app, &request, Scope::Read, error).await),
    };
    Ok(json(StatusCode::OK, &document))
}

/// The balance below which the event `balance.low` is sent
#[utoipa::path(get, path = "/credits/alert", tag = "account", security(("bearer" = []), ("api_key" = [])), responses(
    (status = 200, description = "The threshold", body = BalanceAlertDocument),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn balance_alert(app: &App, request: Request) -> Result<Reply, Problem> {
    Ok(json(StatusCode::OK, &app.service.balance_alert(&request.sender()?).await?))
}

/// Set the balance below which the event `balance.low` is sent
///
/// The event is sent once, when the balance falls below the threshold, and again only after credits were added.
#[utoipa::path(put, path = "/credits/alert", tag = "account", security(("bearer" = []), ("api_key" = [])),
    request_body = BalanceAlertRequest, responses(
    (status = 200, description = "The threshold as it is now", body = BalanceAlertDocument),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn set_balance_alert(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = request.sender()?;
    let actor = app.service.first_key(&sender).await?;
    app.limits.key_changes(&actor)?;
    let wanted: BalanceAlertRequest = read(&request.body)?;
    let set = app.service.set_balance_alert(&sender, &wanted).await;
    Ok(json::<BalanceAlertDocument>(StatusCode::OK, &counted("balance_alert", set)?))
}
