//! Requests about webhooks, events and the balance's alert, one method per endpoint.

use http::Method;
use metering_core::events::{DeliveryId, DeliveryState, WebhookId};
use metering_core::wire::{BalanceAlertRequest, ChangeWebhookRequest, CreateWebhookRequest, RotateWebhookRequest};

use crate::client::Client;
use crate::error::ClientError;
use crate::response::Response;

/// Webhooks and events. The responses are documents of [`metering_core::wire`], as the service wrote them.
impl Client {
    /// `POST /webhooks`: makes a webhook of the account. The response is an
    /// [`IssuedWebhookResponse`](metering_core::wire::IssuedWebhookResponse). If it gets lost, the webhook may be in
    /// the list all the same, and [`Client::rotate_webhook`] gets another secret.
    ///
    /// ```
    /// use metering_client::{Client, ClientError};
    /// use metering_core::wire::{CreateWebhookRequest, IssuedWebhookResponse};
    ///
    /// /// Sends an event to a server when the balance runs low, and returns the secret to check signatures with.
    /// async fn notify(client: &Client, url: &str) -> Result<String, ClientError> {
    ///     let request = CreateWebhookRequest {
    ///         url: Some(url.to_owned()),
    ///         events: Some(vec!["balance.low".to_owned()]),
    ///     };
    ///     let issued: IssuedWebhookResponse = client.create_webhook(&request).await?.json()?;
    ///     Ok(issued.secret.secret().expose().to_string())
    /// }
    /// ```
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn create_webhook(&self, request: &CreateWebhookRequest) -> Result<Response, ClientError> {
        self.post("/webhooks", request).await
    }

    /// `GET /webhooks`: the account's webhooks, oldest first. The response is a
    /// [`WebhooksDocument`](metering_core::wire::WebhooksDocument).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn webhooks(&self) -> Result<Response, ClientError> {
        self.get("/webhooks").await
    }

    /// `GET /webhooks/{id}`: one webhook. The response is a [`WebhookResponse`](metering_core::wire::WebhookResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn webhook(&self, id: &WebhookId) -> Result<Response, ClientError> {
        self.get(&format!("/webhooks/{id}")).await
    }

    /// `PATCH /webhooks/{id}`: changes a webhook. The response is a
    /// [`WebhookResponse`](metering_core::wire::WebhookResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn change_webhook(
        &self,
        id: &WebhookId,
        request: &ChangeWebhookRequest,
    ) -> Result<Response, ClientError> {
        self.send(Method::PATCH, &format!("/webhooks/{id}"), request).await
    }

    /// `DELETE /webhooks/{id}`: deletes a webhook and the list of its deliveries. The response is a
    /// [`DeletedWebhookResponse`](metering_core::wire::DeletedWebhookResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn delete_webhook(&self, id: &WebhookId) -> Result<Response, ClientError> {
        self.open(Method::DELETE, &format!("/webhooks/{id}"), None).await?.read_to_end().await
    }

    /// `POST /webhooks/{id}/rotate`: replaces the secret of a webhook. The response is an
    /// [`IssuedWebhookResponse`](metering_core::wire::IssuedWebhookResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn rotate_webhook(
        &self,
        id: &WebhookId,
        request: &RotateWebhookRequest,
    ) -> Result<Response, ClientError> {
        self.post(&format!("/webhooks/{id}/rotate"), request).await
    }

    /// `POST /webhooks/{id}/test`: sends a test event to a webhook. The response is a
    /// [`DeliveryResponse`](metering_core::wire::DeliveryResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn test_webhook(&self, id: &WebhookId) -> Result<Response, ClientError> {
        self.open(Method::POST, &format!("/webhooks/{id}/test"), None).await?.read_to_end().await
    }

    /// `GET /webhooks/{id}/deliveries`: the deliveries to a webhook, newest first, at most `limit` of them; with
    /// `state`, only those in this state. `after` is the `next` of the page before. The response is a
    /// [`DeliveriesDocument`](metering_core::wire::DeliveriesDocument).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn deliveries(
        &self,
        id: &WebhookId,
        state: Option<DeliveryState>,
        limit: Option<u32>,
        after: Option<&str>,
    ) -> Result<Response, ClientError> {
        let state = state.map(|state| ("state", state.as_str()));
        self.get(&page(&format!("/webhooks/{id}/deliveries"), state, limit, after)).await
    }

    /// `POST /webhooks/{id}/deliveries/{delivery}/resend`: sends a delivery again. The response is a
    /// [`DeliveryResponse`](metering_core::wire::DeliveryResponse).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn resend(&self, id: &WebhookId, delivery: DeliveryId) -> Result<Response, ClientError> {
        let target = format!("/webhooks/{id}/deliveries/{}/resend", delivery.get());
        self.open(Method::POST, &target, None).await?.read_to_end().await
    }

    /// `GET /events`: the account's events, newest first, at most `limit` of them. `after` is the `next` of the page
    /// before. The response is an [`EventsDocument`](metering_core::wire::EventsDocument).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn account_events(&self, limit: Option<u32>, after: Option<&str>) -> Result<Response, ClientError> {
        self.get(&page("/events", None, limit, after)).await
    }

    /// `GET /credits/alert`: the balance below which the event `balance.low` is sent. The response is a
    /// [`BalanceAlertDocument`](metering_core::wire::BalanceAlertDocument).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn balance_alert(&self) -> Result<Response, ClientError> {
        self.get("/credits/alert").await
    }

    /// `PUT /credits/alert`: sets that balance. The response is a
    /// [`BalanceAlertDocument`](metering_core::wire::BalanceAlertDocument).
    ///
    /// # Errors
    /// When the service rejects the request or does not respond.
    pub async fn set_balance_alert(&self, request: &BalanceAlertRequest) -> Result<Response, ClientError> {
        self.send(Method::PUT, "/credits/alert", request).await
    }
}

/// The target of a page of a list.
fn page(path: &str, filter: Option<(&str, &str)>, limit: Option<u32>, after: Option<&str>) -> String {
    let limit = limit.map(|limit| limit.to_string());
    let pairs = [filter, limit.as_deref().map(|limit| ("limit", limit)), after.map(|after| ("after", after))];
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs.into_iter().flatten());
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}
