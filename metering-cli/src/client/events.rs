//! The account's events, and the webhooks that receive them.

pub(crate) mod list;
pub(crate) mod webhooks;
