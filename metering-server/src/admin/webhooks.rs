//! Webhooks and their deliveries, and balance alerts of accounts.

use http::StatusCode;
use metering_core::AccountId;
use metering_core::events::{DeliveryFilter, DeliveryId, DeliveryState, WebhookId};
use metering_core::store::Cursor;
use metering_core::wire::admin::{AccountAlertRequest, ReasonRequest};
use metering_core::wire::{BalanceAlertDocument, DeliveriesDocument, DeliveryResponse, ErrorBody, WebhooksDocument};

use super::app::AdminApp;
use super::reports::limit;
use super::session::no_content;
use crate::endpoints::Request;
use crate::endpoints::query::optional;
use crate::http::{Problem, Reply, json};

/// Webhooks of an account, or the operator's own
#[utoipa::path(get, path = "/admin/webhooks", tag = "webhooks", security(("operator" = [])), params(
    ("account" = Option<String>, Query, description = "The account's id; without it, the operator's own webhook is listed"),
), responses(
    (status = 200, description = "Webhooks, oldest first", body = WebhooksDocument),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn webhooks(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let account: Option<AccountId> = optional(&request.query, "account")?;
    Ok(json(StatusCode::OK, &app.administration.webhooks(account.as_ref()).await?))
}

/// Deliveries to the webhooks of all accounts, newest first
///
/// Filter by account, webhook or state. Parked deliveries are no longer retried. Includes the operator's own webhook.
#[utoipa::path(get, path = "/admin/webhooks/deliveries", tag = "webhooks", security(("operator" = [])), params(
    ("account" = Option<String>, Query, description = "Only deliveries to the webhooks of this account"),
    ("webhook" = Option<String>, Query, description = "Only deliveries to this webhook"),
    ("state" = Option<String>, Query, description = "Only deliveries in this state: `pending`, `delivered` or `parked`"),
    ("after" = Option<String>, Query, description = "The value of `next` in the previous response"),
    ("limit" = Option<u32>, Query, description = "Maximum number of deliveries, 50 by default", minimum = 1, maximum = 1000),
), responses(
    (status = 200, description = "Deliveries", body = DeliveriesDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn deliveries(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let query = &request.query;
    let account: Option<AccountId> = optional(query, "account")?;
    let webhook: Option<WebhookId> = optional(query, "webhook")?;
    let state: Option<StateName> = optional(query, "state")?;
    let after: Option<String> = optional(query, "after")?;
    let filter = DeliveryFilter { webhook, state: state.map(|state| state.0) };
    let (after, limit) = (after.map(Cursor::new), limit(query, 50, 1_000)?);
    let page = app.administration.deliveries(account.as_ref(), filter, after.as_ref(), limit).await?;
    Ok(json(StatusCode::OK, &page))
}

/// Send a delivery again
///
/// Regardless of its state. Later events of its account wait for it. If an attempt is under way, the webhook may get the
/// event twice at the same time.
#[utoipa::path(post, path = "/admin/webhooks/deliveries/{id}/resend", tag = "webhooks", security(("operator" = [])),
    request_body = ReasonRequest, params(("id" = i64, Path, description = "The delivery's id")), responses(
    (status = 202, description = "The delivery as it is now", body = DeliveryResponse),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
    (status = 409, description = "`conflict`: the webhook is disabled or gone", body = ErrorBody),
))]
pub(super) async fn resend(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    let id = DeliveryId::new(request.parameter(0, "id")?);
    let data = app.administration.resend_delivery(&action, id).await?;
    app.app.wake_courier.wake();
    Ok(json(StatusCode::ACCEPTED, &DeliveryResponse { data }))
}

/// Send a test event to the operator's own webhook
#[utoipa::path(post, path = "/admin/webhooks/test", tag = "webhooks", security(("operator" = [])),
    request_body = ReasonRequest, responses(
    (status = 202, description = "The delivery of the event", body = DeliveryResponse),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`: the operator has no webhook", body = ErrorBody),
))]
pub(super) async fn test(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    let data = app.administration.test_webhook(&action).await?;
    app.app.wake_courier.wake();
    Ok(json(StatusCode::ACCEPTED, &DeliveryResponse { data }))
}

/// Remove the operator's own webhook
///
/// Its deliveries are deleted with it. A server whose configuration has `webhooks.url` stores it again when it starts.
#[utoipa::path(post, path = "/admin/webhooks/remove", tag = "webhooks", security(("operator" = [])),
    request_body = ReasonRequest, responses(
    (status = 204, description = "It was removed"),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`: the operator has no webhook", body = ErrorBody),
))]
pub(super) async fn remove(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    app.administration.remove_operator_webhook(&action).await?;
    Ok(no_content())
}

/// Set the balance below which an account's event `balance.low` is sent
#[utoipa::path(put, path = "/admin/accounts/{id}/alert", tag = "accounts", security(("operator" = [])),
    request_body = AccountAlertRequest, params(("id" = String, Path, description = "The account's id")), responses(
    (status = 200, description = "The threshold as it is now", body = BalanceAlertDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn set_alert(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let wanted: AccountAlertRequest = app.read(&request).await?;
    let action = app.action(&request, &wanted.reason).await?;
    let id: AccountId = request.parameter(0, "id")?;
    Ok(json(StatusCode::OK, &app.administration.set_balance_alert(&action, &id, &wanted.alert()).await?))
}

/// The name of a state in a query.
struct StateName(DeliveryState);

impl std::str::FromStr for StateName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || DeliveryState::ALL.map(DeliveryState::as_str).join(", ");
        DeliveryState::from_name(text).map(Self).ok_or_else(|| format!("must be one of {}", names()))
    }
}
