//! Webhooks of the caller's account, and their deliveries.

use http::StatusCode;
use metering_core::access::Scope;
use metering_core::wire::{
    ChangeWebhookRequest, CreateWebhookRequest, DeletedWebhookResponse, DeliveriesDocument, DeliveryResponse,
    ErrorBody, IssuedWebhookResponse, RotateWebhookRequest, WebhookResponse, WebhooksDocument,
};

use crate::access::credentials::Sender;
use crate::api::account::after_authorization;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::endpoints::query::{number, optional};
use crate::http::{Problem, Reply, json};
use crate::operations::metrics::counted;

/// Create a webhook
///
/// It gets the account's events, signed as [Standard Webhooks](https://www.standardwebhooks.com) specifies. The secret
/// is shown only once. If the response is lost, list the webhooks, and rotate the secret of the new one.
#[utoipa::path(post, path = "/webhooks", tag = "webhooks", security(("bearer" = []), ("api_key" = [])),
    request_body = CreateWebhookRequest, responses(
    (status = 201, description = "The webhook and its secret", body = IssuedWebhookResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`: also if the URL is not https, or its host is not public", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: this service does not offer webhooks", body = ErrorBody),
    (status = 409, description = "`too_many_webhooks`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn create_webhook(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = manager(app, &request).await?;
    let wanted: CreateWebhookRequest = read(&request.body)?;
    let created = app.service.create_webhook(&sender, &wanted).await;
    Ok(json::<IssuedWebhookResponse>(StatusCode::CREATED, &counted("webhook_creation", created)?))
}

/// The account's webhooks, oldest first
#[utoipa::path(get, path = "/webhooks", tag = "webhooks", security(("bearer" = []), ("api_key" = [])), responses(
    (status = 200, description = "Webhooks", body = WebhooksDocument),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn webhooks(app: &App, request: Request) -> Result<Reply, Problem> {
    Ok(json(StatusCode::OK, &app.service.webhooks(&request.sender()?).await?))
}

/// One webhook
#[utoipa::path(get, path = "/webhooks/{id}", tag = "webhooks", security(("bearer" = []), ("api_key" = [])), params(
    ("id" = String, Path, description = "The webhook's id", example = "we_0123456789abcdef0123456789abcdef"),
), responses(
    (status = 200, description = "The webhook", body = WebhookResponse),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`webhook_not_found`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn webhook(app: &App, request: Request) -> Result<Reply, Problem> {
    Ok(json(StatusCode::OK, &app.service.webhook(&request.sender()?, segment(&request, 0)).await?))
}

/// Change a webhook
///
/// Omitted fields are unchanged. Takes effect with the next attempt of each delivery.
#[utoipa::path(patch, path = "/webhooks/{id}", tag = "webhooks", security(("bearer" = []), ("api_key" = [])), params(
    ("id" = String, Path, description = "The webhook's id", example = "we_0123456789abcdef0123456789abcdef"),
), request_body = ChangeWebhookRequest, responses(
    (status = 200, description = "The webhook as it is now", body = WebhookResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`: also if the URL is not https, or its host is not public", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`webhook_not_found`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn change_webhook(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = manager(app, &request).await?;
    let change: ChangeWebhookRequest = read(&request.body)?;
    let changed = app.service.change_webhook(&sender, segment(&request, 0), &change).await;
    Ok(json::<WebhookResponse>(StatusCode::OK, &counted("webhook_change", changed)?))
}

/// Delete a webhook
///
/// Deletes its deliveries too. An attempt in progress may still arrive.
#[utoipa::path(delete, path = "/webhooks/{id}", tag = "webhooks", security(("bearer" = []), ("api_key" = [])), params(
    ("id" = String, Path, description = "The webhook's id", example = "we_0123456789abcdef0123456789abcdef"),
), responses(
    (status = 200, description = "Deleted", body = DeletedWebhookResponse),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`webhook_not_found`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn delete_webhook(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = manager(app, &request).await?;
    let deleted = app.service.delete_webhook(&sender, segment(&request, 0)).await;
    Ok(json::<DeletedWebhookResponse>(StatusCode::OK, &counted("webhook_deletion", deleted)?))
}

/// Replace the secret of a webhook
///
/// For `grace_seconds`, a day by default, requests have two signatures: with the new secret and with the old one. The
/// new secret is shown only once; if the response is lost, rotate again.
#[utoipa::path(post, path = "/webhooks/{id}/rotate", tag = "webhooks", security(("bearer" = []), ("api_key" = [])), params(
    ("id" = String, Path, description = "The webhook's id", example = "we_0123456789abcdef0123456789abcdef"),
), request_body = Option<RotateWebhookRequest>, responses(
    (status = 200, description = "The webhook and its new secret", body = IssuedWebhookResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`webhook_not_found`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn rotate_webhook(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = manager(app, &request).await?;
    let wanted = if request.body.is_empty() { RotateWebhookRequest::default() } else { read(&request.body)? };
    let rotated = app.service.rotate_webhook(&sender, segment(&request, 0), &wanted).await;
    Ok(json::<IssuedWebhookResponse>(StatusCode::OK, &counted("webhook_rotation", rotated)?))
}

/// Send a test event to a webhook
///
/// Even if it does not subscribe to that event. The event is sent after the deliveries that are pending.
#[utoipa::path(post, path = "/webhooks/{id}/test", tag = "webhooks", security(("bearer" = []), ("api_key" = [])), params(
    ("id" = String, Path, description = "The webhook's id", example = "we_0123456789abcdef0123456789abcdef"),
), responses(
    (status = 202, description = "The delivery of the event", body = DeliveryResponse),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`webhook_not_found`", body = ErrorBody),
    (status = 409, description = "`conflict`: the webhook is disabled or gone", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn test_webhook(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = tester(app, &request).await?;
    let tested = app.service.test_webhook(&sender, segment(&request, 0)).await;
    Ok(json::<DeliveryResponse>(StatusCode::ACCEPTED, &counted("webhook_test", tested)?))
}

/// The deliveries to a webhook, newest first
///
/// Deliveries are kept for 30 days. If `next` is not null, more follow: send it as `after`.
#[utoipa::path(get, path = "/webhooks/{id}/deliveries", tag = "webhooks", security(("bearer" = []), ("api_key" = [])), params(
    ("id" = String, Path, description = "The webhook's id", example = "we_0123456789abcdef0123456789abcdef"),
    ("state" = Option<String>, Query, description = "Only deliveries in this state: `pending`, `delivered` or `parked`"),
    ("after" = Option<String>, Query, description = "The value of `next` in the previous response"),
    ("limit" = Option<u32>, Query, description = "Maximum number of deliveries, 20 by default", minimum = 1, maximum = 100, example = 20),
), responses(
    (status = 200, description = "Deliveries", body = DeliveriesDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`webhook_not_found`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn deliveries(app: &App, request: Request) -> Result<Reply, Problem> {
    let (sender, query) = (request.sender()?, &request.query);
    let read = || {
        let state: Option<String> = optional(query, "state")?;
        let after: Option<String> = optional(query, "after")?;
        Ok((state, after, number(query, "limit", 20)?))
    };
    let (state, after, limit) = match read() {
        Ok(read) => read,
        Err::<_, metering_core::Error>(error) => {
            return Err(after_authorization(app, &request, Scope::Read, error).await);
        }
    };
    let id = segment(&request, 0);
    let document = app.service.deliveries(&sender, id, state.as_deref(), after.as_deref(), limit).await?;
    Ok(json(StatusCode::OK, &document))
}

/// Send a delivery again
///
/// Regardless of its state: one that is parked or delivered, or one that is pending and waits for its next attempt. It
/// keeps its place in the account's order, so later events wait for it. If an attempt is in progress, the webhook may
/// get the event twice at the same time.
#[utoipa::path(post, path = "/webhooks/{id}/deliveries/{delivery}/resend", tag = "webhooks", security(("bearer" = []), ("api_key" = [])), params(
    ("id" = String, Path, description = "The webhook's id", example = "we_0123456789abcdef0123456789abcdef"),
    ("delivery" = i64, Path, description = "The delivery's id", example = 17),
), responses(
    (status = 202, description = "The delivery as it is now", body = DeliveryResponse),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`webhook_not_found`, `delivery_not_found`", body = ErrorBody),
    (status = 409, description = "`conflict`: the webhook is disabled or gone", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn resend_delivery(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = tester(app, &request).await?;
    let resent = app.service.resend_delivery(&sender, segment(&request, 0), segment(&request, 1)).await;
    Ok(json::<DeliveryResponse>(StatusCode::ACCEPTED, &counted("webhook_resend", resent)?))
}

fn segment(request: &Request, index: usize) -> &str {
    request.path.get(index).map(String::as_str).unwrap_or_default()
}

/// The sender, whose key is the first one of the account. Counts a change.
async fn manager(app: &App, request: &Request) -> Result<Sender, Problem> {
    let sender = request.sender()?;
    let actor = app.service.first_key(&sender).await?;
    app.limits.key_changes(&actor)?;
    Ok(sender)
}

/// The sender, whose key may manage the account. Counts a test or a resend.
async fn tester(app: &App, request: &Request) -> Result<Sender, Problem> {
    let sender = request.sender()?;
    let account = app.service.authorize(&sender, Scope::Manage).await?;
    app.limits.webhook_test(&account.id)?;
    Ok(sender)
}
