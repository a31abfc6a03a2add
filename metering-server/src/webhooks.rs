//! Sends webhooks.
//!
//! Customers choose the URLs, so requests to them are a way into the operator's network. The defence: only `https`,
//! only addresses that the policy allows, checked on the addresses of the actual connection (so a changing DNS answer
//! does not bypass it), no redirects, and no proxy.

mod client;
mod delivering;
mod failure;
mod resolver;
mod sender;
mod usage;

pub(crate) use self::client::{FetchedDocument, WebhookClient};
pub(crate) use self::delivering::{Delivering, finish};
pub(crate) use self::usage::Sinks;
