//! The storage traits, implemented for a [`Backend`](crate::Backend) by its scripts.
//!
//! These are macros because a type can only implement the traits of another crate in its own. After the type, a macro
//! takes the methods that the backend implements itself.

mod accounts;
mod authorizations;
mod browser_sessions;
mod child_accounts;
mod events;
mod full;
mod holds;
mod imports;
mod keys;
mod log;
mod members;
mod oauth;
mod operators;
mod payments;
mod scripted;
mod signups;
mod usage_sinks;
