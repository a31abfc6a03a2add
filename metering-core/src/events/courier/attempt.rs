//! One attempt to deliver an event: signs it, sends it, and records the outcome.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::clock::Clock;
use crate::events::delivery::{AttemptOutcome, Delivery, DeliveryState, DueDelivery};
use crate::events::secret::WebhookSecret;
use crate::events::signature::signature;
use crate::retry::RetryPolicy;
use crate::store::EventStore;

use super::{CourierStats, WebhookMessage, WebhookSender};

/// How long to wait before recording an outcome again, if the store failed. Until the claim expires, no other process
/// sends the event.
const RECORD_RETRY: RetryPolicy = RetryPolicy::exponential(Duration::from_millis(250), Duration::from_secs(5));

/// Makes attempts.
#[derive(Debug)]
pub(super) struct Attempts {
    pub(super) store: Arc<dyn EventStore>,
    pub(super) sender: Arc<dyn WebhookSender>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) operator_secrets: Vec<WebhookSecret>,
    pub(super) timeout: Duration,
    pub(super) stats: Arc<CourierStats>,
}

impl Attempts {
    /// Sends a claimed delivery, and records the outcome. A sender that panics has failed: otherwise the delivery would
    /// never be parked, and later ones would wait.
    pub(super) async fn make(self: Arc<Self>, due: DueDelivery) {
        let sent = tokio::time::timeout(self.timeout, unless_it_panics(self.send(&due))).await;
        let outcome = match sent {
            Ok(Some(outcome)) => outcome,
            Ok(None) => {
                tracing::error!(event = %due.delivery.event.id(), "sending a webhook panicked");
                failed("the service failed to send it")
            }
            Err(_) => failed("there was no response in time"),
        };
        self.record(&due.delivery, outcome).await;
    }

    async fn send(&self, due: &DueDelivery) -> AttemptOutcome {
        let DueDelivery { delivery, webhook } = due;
        let Some(body) = delivery.event.body() else {
            tracing::error!(event = %delivery.event.id(), "the data of an event in the store is not JSON");
            return failed("the event cannot be read");
        };
        let (timestamp, id) = (self.clock.now(), delivery.event.id());
        let secrets: Vec<_> = match &webhook.account {
            Some(_) => webhook.signing_secrets(timestamp).collect(),
            None => self.operator_secrets.iter().collect(),
        };
        let signature = signature(&secrets, id.as_str(), timestamp, body.as_bytes());
        let message =
            WebhookMessage { webhook, id: id.as_str(), timestamp, signature: &signature, body: body.as_bytes() };
        self.sender.send(message).await
    }

    /// Records the outcome of an attempt. If the store fails, retries until the claim expires.
    async fn record(&self, delivery: &Delivery, outcome: AttemptOutcome) {
        let (id, attempt) = (delivery.id, delivery.progress.attempts);
        let mut retries = RECORD_RETRY.start();
        loop {
            let now = self.clock.now();
            match self.store.finish_delivery(id, attempt, outcome.clone(), now).await {
                Ok(finished) => {
                    self.stats.count(&outcome, finished.as_ref());
                    finished.iter().for_each(log_parked);
                    return;
                }
                Err(error) if now >= delivery.progress.next_at => {
                    self.stats.count(&outcome, None);
                    let event = delivery.event.id();
                    tracing::warn!(%error, %event, "could not record the outcome of a webhook attempt; retrying it");
                    return;
                }
                Err(_) => {
                    let wait = retries.next_wait(None, Duration::ZERO);
                    tokio::time::sleep(wait.unwrap_or(RECORD_RETRY.longest_wait)).await;
                }
            }
        }
    }
}

/// The result of a future; `None` if it panicked.
async fn unless_it_panics<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(polled) => polled.map(Some),
        // It is not polled again.
        Err(_) => Poll::Ready(None),
    })
    .await
}

fn failed(error: &str) -> AttemptOutcome {
    AttemptOutcome::Failed { status: None, error: error.to_owned(), retry_after: None, response: None }
}

fn log_parked(delivery: &Delivery) {
    let Delivery { id, webhook, event, progress } = delivery;
    if progress.state == DeliveryState::Parked {
        let account = event.account.as_ref().map(ToString::to_string).unwrap_or_default();
        let (delivery, event) = (id.get(), event.id());
        tracing::warn!(delivery, %webhook, account, %event, "gave up delivering an event; delivery parked");
    }
}
