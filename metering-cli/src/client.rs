//! The client commands: what account holders do with a service, over its HTTP routes.
//!
//! A command opens a [`session::Session`], which knows the profile, the service and the key, sends requests and prints
//! the responses. State that outlives a command is kept in the profile's directory, in one file per kind.

pub(crate) mod access;
pub(crate) mod catalogue;
pub(crate) mod charging;
pub(crate) mod events;
pub(crate) mod money;
pub(crate) mod paying;
pub(crate) mod payments;
pub(crate) mod session;
pub(crate) mod signups;
pub(crate) mod usage;
