//! What happened to the account, and the webhooks that are told about it.

pub(crate) mod list;
pub(crate) mod webhooks;
