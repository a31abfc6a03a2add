//! Sends webhooks: one request for one delivery. When to send, and what to do with the result, is up to the caller.
//!
//! Customers choose the URLs, so requests to them are a way into the operator's network. What keeps them out: only
//! `https`, only addresses that the policy allows, checked on the very addresses that are connected to (so a DNS answer
//! that changes is no way around it), no redirects, and no proxy.

mod client;
mod failure;
mod resolver;

#[expect(unused_imports, reason = "the delivery loop will use them")]
pub(crate) use self::{
    client::{WebhookClient, WebhookRequest, WebhookResponse},
    failure::WebhookFailure,
};
