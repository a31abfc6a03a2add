//! The account's events, and the webhooks that receive them.

pub(crate) mod list;
mod sentence;
pub(crate) mod webhooks;
