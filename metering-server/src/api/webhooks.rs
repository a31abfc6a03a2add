//! Webhooks of the caller's account, and their deliveries.

use metering_client::calls::webhooks::ListDeliveries;
use metering_core::access::{Right, Scope};
use metering_core::store::Cursor;
use metering_core::wire::{
    ChangeWebhookRequest, CreateWebhookRequest, DeletedWebhookResponse, DeliveriesDocument, DeliveryPayloadResponse,
    DeliveryResponse, IssuedWebhookResponse, RotateWebhookRequest, WebhookResponse, WebhooksDocument,
};

use crate::access::credentials::Sender;
use crate::api::account::{first_key, parameters};
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::Problem;
use crate::operations::metrics::counted;

pub(crate) async fn create_webhook(app: &App, request: Request) -> Result<IssuedWebhookResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Develop).await?;
    let wanted: CreateWebhookRequest = read(&request.body)?;
    let created = app.service.webhooks().create(&sender, &wanted).await;
    Ok(counted("webhook_creation", created)?)
}

pub(crate) async fn webhooks(app: &App, request: Request) -> Result<WebhooksDocument, Problem> {
    Ok(app.service.webhooks().list(&request.sender()?).await?)
}

pub(crate) async fn webhook(app: &App, request: Request) -> Result<WebhookResponse, Problem> {
    Ok(app.service.webhooks().get(&request.sender()?, request.segment(0)).await?)
}

pub(crate) async fn change_webhook(app: &App, request: Request) -> Result<WebhookResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Develop).await?;
    let change: ChangeWebhookRequest = read(&request.body)?;
    let changed = app.service.webhooks().change(&sender, request.segment(0), &change).await;
    Ok(counted("webhook_change", changed)?)
}

pub(crate) async fn delete_webhook(app: &App, request: Request) -> Result<DeletedWebhookResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Develop).await?;
    let deleted = app.service.webhooks().delete(&sender, request.segment(0)).await;
    Ok(counted("webhook_deletion", deleted)?)
}

pub(crate) async fn rotate_webhook(app: &App, request: Request) -> Result<IssuedWebhookResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Develop).await?;
    let wanted = if request.body.is_empty() { RotateWebhookRequest::default() } else { read(&request.body)? };
    let rotated = app.service.webhooks().rotate(&sender, request.segment(0), &wanted).await;
    Ok(counted("webhook_rotation", rotated)?)
}

pub(crate) async fn test_webhook(app: &App, request: Request) -> Result<DeliveryResponse, Problem> {
    let sender = tester(app, &request).await?;
    let tested = app.service.webhooks().test(&sender, request.segment(0)).await;
    Ok(counted("webhook_test", tested)?)
}

pub(crate) async fn deliveries(app: &App, request: Request) -> Result<DeliveriesDocument, Problem> {
    let page = parameters::<ListDeliveries>(app, &request, Scope::Read).await?;
    let (sender, after) = (request.sender()?, page.after.as_ref().map(Cursor::as_str));
    let (state, kind) = (page.state.as_deref(), page.event.as_deref());
    Ok(app.service.webhooks().deliveries(&sender, &page.id, state, kind, after, page.limit.0).await?)
}

pub(crate) async fn delivery(app: &App, request: Request) -> Result<DeliveryPayloadResponse, Problem> {
    let sender = request.sender()?;
    Ok(app.service.webhooks().delivery(&sender, request.segment(0), request.segment(1)).await?)
}

pub(crate) async fn resend_delivery(app: &App, request: Request) -> Result<DeliveryResponse, Problem> {
    let sender = tester(app, &request).await?;
    let resent = app.service.webhooks().resend(&sender, request.segment(0), request.segment(1)).await;
    Ok(counted("webhook_resend", resent)?)
}

/// The sender, whose key may manage the account. Counts a test or a resend.
async fn tester(app: &App, request: &Request) -> Result<Sender, Problem> {
    let sender = request.sender()?;
    let account = app.service.access().authorize(&sender, Scope::Manage).await?;
    app.limits.webhook_test(&account.id)?;
    Ok(sender)
}
