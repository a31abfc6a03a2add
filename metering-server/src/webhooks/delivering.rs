//! The task that delivers webhooks, from start to shutdown.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use metering_core::events::{Courier, CourierSettings, CourierStats, Wake, WebhookTerms};
use metering_core::{Clock, FullStore};
use tokio::task::JoinHandle;

use super::sender::HttpSender;
use crate::config::WebhooksConfig;
use crate::http::Shutdown;

/// How long to wait before trying again to store the operator's webhook.
const RETRY: Duration = Duration::from_secs(5);

/// How long a shutdown waits for attempts.
const GRACE: Duration = Duration::from_secs(5);

/// What is needed to deliver webhooks, before the task starts.
#[derive(Debug)]
pub(crate) struct Delivering {
    store: Arc<dyn FullStore>,
    clock: Arc<dyn Clock>,
    operators: Option<WebhookTerms>,
    courier: Courier,
}

impl Delivering {
    /// `None` if this process sends no webhooks.
    ///
    /// # Errors
    /// When certificates or secrets cannot be read.
    pub(crate) fn new(
        config: &WebhooksConfig,
        store: Arc<dyn FullStore>,
        clock: Arc<dyn Clock>,
        wake: Wake,
    ) -> Result<Option<Self>, Box<dyn Error + Send + Sync>> {
        if !config.enabled {
            return Ok(None);
        }
        let sender = Arc::new(HttpSender::new(config)?);
        let operator_secrets = config.operators_secrets()?;
        let settings = CourierSettings { operator_secrets, wake, ..CourierSettings::default() };
        let courier = Courier::new(Arc::clone(&store) as _, sender, Arc::clone(&clock), settings);
        Ok(Some(Self { store, clock, operators: config.operators()?, courier }))
    }

    /// What the attempts came to.
    pub(crate) fn stats(&self) -> Arc<CourierStats> {
        self.courier.stats()
    }

    /// Delivers until shutdown. Then no more attempts begin.
    pub(crate) fn start(self, shutdown: Shutdown) -> JoinHandle<()> {
        tokio::spawn(async move {
            tokio::select! {
                () = set_operators(&*self.store, self.operators, &*self.clock) => {}
                () = shutdown.cancelled() => return,
            }
            self.courier.run(shutdown.cancelled()).await;
        })
    }
}

/// Waits for the attempts under way, but not long: a slow receiver must not keep the server from restarting. An attempt
/// that is given up is made again when its claim has run out.
pub(crate) async fn finish(task: Option<JoinHandle<()>>) {
    let Some(mut task) = task else { return };
    match tokio::time::timeout(GRACE, &mut task).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the task that delivers webhooks failed"),
        Err(_) => {
            task.abort();
            tracing::info!("webhooks that are being sent are given up; they are sent again after the restart");
        }
    }
}

/// Stores the operator's own webhook as it is configured.
async fn set_operators(store: &dyn FullStore, terms: Option<WebhookTerms>, clock: &dyn Clock) {
    while let Err(error) = store.set_operator_webhook(terms.clone(), clock.now()).await {
        tracing::warn!(%error, "could not store the operator's webhook; trying again");
        tokio::time::sleep(RETRY).await;
    }
}
