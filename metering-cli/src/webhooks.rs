//! Webhooks and deliveries as the client's and the administrator's commands print them.

pub(crate) mod delivery;
pub(crate) mod document;
