//! The task that delivers webhooks, from start to shutdown.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use metering_core::events::{Courier, CourierSettings, CourierStats, Wake, WebhookState, WebhookTerms};
use metering_core::{Clock, FullStore, StoreError};
use tokio::task::JoinHandle;

use super::sender::EventSender;
use crate::config::WebhooksConfig;
use crate::http::Shutdown;
use crate::mail::AlertMail;

/// How long a shutdown waits for attempts.
const GRACE: Duration = Duration::from_secs(5);

/// The parts of webhook delivery, before its task starts.
#[derive(Debug)]
pub(crate) struct Delivering {
    courier: Courier,
}

impl Delivering {
    /// `None` if this process sends no webhooks. `mail` sends those that are mail, if this process sends mail.
    ///
    /// Stores the operator's own webhook first, because events are kept for it from then on.
    ///
    /// # Errors
    /// When certificates or secrets cannot be read, or the store fails.
    pub(crate) async fn prepare(
        config: &WebhooksConfig,
        store: Arc<dyn FullStore>,
        clock: Arc<dyn Clock>,
        wake: Wake,
        mail: Option<AlertMail>,
    ) -> Result<Option<Self>, Box<dyn Error + Send + Sync>> {
        if !config.deliver {
            return Ok(None);
        }
        let sender = Arc::new(EventSender::new(config, mail)?);
        let operator_secrets = config.operators_secrets()?;
        let settings = CourierSettings { operator_secrets, wake, ..CourierSettings::default() };
        set_operators(&*store, config.operators()?, &*clock).await?;
        Ok(Some(Self { courier: Courier::new(store, sender, clock, settings) }))
    }

    /// Counts of its attempts.
    pub(crate) fn stats(&self) -> Arc<CourierStats> {
        self.courier.stats()
    }

    /// Delivers until shutdown. Then no more attempts begin.
    pub(crate) fn start(self, shutdown: Shutdown) -> JoinHandle<()> {
        tokio::spawn(async move {
            self.courier.run(shutdown.cancelled()).await;
        })
    }
}

/// Waits for the attempts in progress, but not long: a slow receiver must not delay a restart. An aborted attempt is
/// made again when its claim has expired.
pub(crate) async fn finish(task: Option<JoinHandle<()>>) {
    let Some(mut task) = task else { return };
    match tokio::time::timeout(GRACE, &mut task).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the task that delivers webhooks failed"),
        Err(_) => {
            task.abort();
            tracing::info!("aborted webhook attempts at shutdown; they are retried within a minute");
        }
    }
}

/// Stores the operator's own webhook from the configuration. A process without one does not remove a stored one, which
/// another process may have configured.
async fn set_operators(
    store: &dyn FullStore,
    terms: Option<WebhookTerms>,
    clock: &dyn Clock,
) -> Result<(), StoreError> {
    let stored = store.webhooks(None).await?.pop();
    match (terms, stored) {
        (Some(terms), stored) => {
            let is_new = stored.is_none_or(|stored| stored.terms != terms || stored.state != WebhookState::Active);
            if is_new {
                tracing::info!(kinds = %terms.kinds, "storing the configured operator's webhook");
                store.set_operator_webhook(Some(terms), clock.now()).await?;
            }
        }
        (None, Some(_)) => tracing::warn!(
            "this server has no webhooks.url, but events are kept for the operator's webhook, and other servers send them; \
             if no server should, run `metering admin webhook remove`"
        ),
        (None, None) => {}
    }
    Ok(())
}
