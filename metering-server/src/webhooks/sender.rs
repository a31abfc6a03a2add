//! Sends the courier's messages over HTTP, or as mail.

use std::error::Error;

use async_trait::async_trait;
use bytes::Bytes;
use metering_core::events::{AttemptOutcome, WebhookMessage, WebhookSender};

use super::client::{WebhookClient, WebhookRequest};
use crate::config::WebhooksConfig;
use crate::mail::AlertMail;

/// Sends webhooks to customers and to the operator, who need not have a public address, and mail to customers.
#[derive(Debug)]
pub(super) struct EventSender {
    customers: WebhookClient,
    operator: WebhookClient,
    mail: Option<AlertMail>,
}

impl EventSender {
    /// # Errors
    /// When the certificates cannot be used.
    pub(super) fn new(config: &WebhooksConfig, mail: Option<AlertMail>) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let ca_file = config.ca_file.as_deref();
        let customers = WebhookClient::for_customers(config.addresses(), ca_file)?;
        Ok(Self { customers, operator: WebhookClient::for_operator(ca_file)?, mail })
    }
}

#[async_trait]
impl WebhookSender for EventSender {
    async fn send(&self, message: WebhookMessage<'_>) -> AttemptOutcome {
        let WebhookMessage { webhook, id, timestamp, signature, body } = message;
        if let (Some(account), Some(to)) = (&webhook.account, webhook.terms.url.email()) {
            return match &self.mail {
                Some(mail) => mail.send(account, &to, id, body).await,
                // Another process may send mail.
                None => failed("mail is not sent at the moment".to_owned()),
            };
        }
        let is_customers = webhook.account.is_some();
        let client = if is_customers { &self.customers } else { &self.operator };
        let (url, body) = (&webhook.terms.url, Bytes::copy_from_slice(body));
        match client.send(WebhookRequest { url, id, timestamp, signature, body }).await {
            Ok(response) => response.outcome(),
            Err(failure) => {
                tracing::info!(webhook = %webhook.id, event = id, reason = %failure, "a webhook got no response");
                let error = if is_customers { failure.for_customers() } else { failure.to_string() };
                failed(error)
            }
        }
    }
}

pub(super) fn failed(error: String) -> AttemptOutcome {
    AttemptOutcome::Failed { status: None, error, retry_after: None, response: None }
}
