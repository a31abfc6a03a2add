//! Mails alerts. An alert is a delivery to a `mailto:` webhook, so it is queued and retried as all deliveries are: this
//! only makes one attempt.

use std::fmt;
use std::sync::Arc;

use metering_core::Service;
use metering_core::access::{AccountId, Email};
use metering_core::events::AttemptOutcome;
use tokio::sync::Semaphore;

use crate::mail::counted::count;
use crate::mail::message::Letterhead;
use crate::mail::transport::Transport;
use crate::run::Current;

/// Alerts that are sent at the same time.
const AT_ONCE: usize = 4;

/// The status of a message that the mail server accepted (RFC 5321).
const ACCEPTED: u16 = 250;

/// Mails alerts.
pub(crate) struct AlertMail {
    service: Arc<Service>,
    transport: Arc<Transport>,
    letterhead: Arc<Current<Letterhead>>,
    slots: Semaphore,
}

impl AlertMail {
    pub(super) fn new(service: Arc<Service>, transport: Arc<Transport>, letterhead: Arc<Current<Letterhead>>) -> Self {
        Self { service, transport, letterhead, slots: Semaphore::new(AT_ONCE) }
    }

    /// Mails an event of an account, once. Customers see this reason, so it reveals nothing about the mail server.
    pub(crate) async fn send(&self, account: &AccountId, to: &Email, event: &str, body: &[u8]) -> AttemptOutcome {
        let outcome = self.attempt(account, to, event, body).await;
        let counted = if matches!(outcome, AttemptOutcome::Delivered { .. }) { "sent" } else { "failed" };
        count("alert", counted);
        outcome
    }

    async fn attempt(&self, account: &AccountId, to: &Email, event: &str, body: &[u8]) -> AttemptOutcome {
        // Never closed.
        let _slot = self.slots.acquire().await;
        let body = String::from_utf8_lossy(body);
        let mail = match self.service.emails().prepare_alert(account, to, &body).await {
            Ok(Some(mail)) => mail,
            Ok(None) => return AttemptOutcome::Gone,
            Err(error) => {
                tracing::warn!(%error, event, "could not prepare a mailed alert");
                return failed("the mail could not be written");
            }
        };
        let message = match self.letterhead.load().message_of(&mail, event) {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!(%error, event, "could not write a mailed alert");
                return failed("the mail could not be written");
            }
        };
        match self.transport.send(message).await {
            Ok(()) => AttemptOutcome::Delivered { status: ACCEPTED },
            Err(unsent) => {
                tracing::warn!(error = %unsent, event, "could not mail an alert");
                failed(if unsent.may_pass { "the mail could not be sent yet" } else { "the mail was refused" })
            }
        }
    }
}

impl fmt::Debug for AlertMail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlertMail").finish_non_exhaustive()
    }
}

fn failed(error: &str) -> AttemptOutcome {
    AttemptOutcome::Failed { status: None, error: error.to_owned(), retry_after: None, response: None }
}
