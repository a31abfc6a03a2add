//! The parts that a service needs for webhooks.

use std::sync::Arc;

use crate::error::Error;
use crate::service::WebhookSettings;
use crate::store::EventStore;

/// The settings of [`Service::with_webhooks`](crate::Service::with_webhooks).
#[derive(Debug, Clone, Default)]
pub(in crate::service) struct WebhookSetup {
    /// `None` when the service offers no webhooks.
    pub(super) store: Option<Arc<dyn EventStore>>,
    pub(super) settings: WebhookSettings,
}

impl WebhookSetup {
    pub(super) fn store(&self) -> Result<&dyn EventStore, Error> {
        self.store.as_deref().ok_or(Error::WebhooksNotOffered)
    }
}
