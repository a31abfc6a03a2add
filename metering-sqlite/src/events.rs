//! Events, the webhooks that they are sent to, and their deliveries. An event is written in the transaction of its cause,
//! and its deliveries with it ([`outbox`]).

pub(crate) mod backlog;
pub(crate) mod deliveries;
pub(crate) mod due;
pub(crate) mod event;
pub(crate) mod line;
pub(crate) mod outbox;
pub(crate) mod progress;
pub(crate) mod webhooks;
