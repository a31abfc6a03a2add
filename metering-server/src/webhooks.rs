//! Sends webhooks.
//!
//! Customers choose the URLs, so requests to them are a way into the operator's network. What keeps them out: only
//! `https`, only addresses that the policy allows, checked on the very addresses that are connected to (so a DNS answer
//! that changes is no way around it), no redirects, and no proxy.

mod client;
mod delivering;
mod failure;
mod resolver;
mod sender;

pub(crate) use self::delivering::{Delivering, finish};
