//! Events, the webhooks that they are sent to, and their deliveries.

pub(crate) mod backlog;
pub(crate) mod deliveries;
pub(crate) mod due;
pub(crate) mod heads;
pub(crate) mod outbox;
pub(crate) mod progress;
pub(crate) mod webhooks;
