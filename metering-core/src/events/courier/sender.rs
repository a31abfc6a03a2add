use std::fmt;

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::events::delivery::AttemptOutcome;
use crate::events::webhook::Webhook;

/// Sends webhooks, over HTTP or otherwise.
#[async_trait]
pub trait WebhookSender: Send + Sync + fmt::Debug {
    /// Sends one webhook: a `POST` to the URL, with the headers `webhook-id`, `webhook-timestamp` and
    /// `webhook-signature`. [`AttemptOutcome::of_response`] interprets the response.
    ///
    /// A customer chose the URL. So a sender must connect only to addresses that an
    /// [`AddressPolicy`](crate::events::AddressPolicy) allows, and must not follow redirects.
    async fn send(&self, message: WebhookMessage<'_>) -> AttemptOutcome;
}

/// One attempt to deliver an event.
#[derive(Debug, Clone, Copy)]
pub struct WebhookMessage<'a> {
    /// Where to. The operator's own webhook has no account.
    pub webhook: &'a Webhook,
    /// The value of `webhook-id`, the same for every attempt.
    pub id: &'a str,
    /// The time of this attempt; its whole Unix seconds are the value of `webhook-timestamp`.
    pub timestamp: Timestamp,
    /// The value of `webhook-signature`.
    pub signature: &'a str,
    /// The body, of type `application/json`, which is signed byte for byte.
    pub body: &'a [u8],
}
