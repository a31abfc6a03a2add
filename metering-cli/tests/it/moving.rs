//! `metering admin migrate`: the real program, from real files to a real PostgreSQL.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod afterwards;
mod alike;
mod arguments;
mod authorizations;
mod equality;
mod events;
mod filling;
mod fixture;
mod holds;
mod interruptions;
mod keys;
mod link;
mod out;
mod refusals;
mod snapshot;
mod volumes;
