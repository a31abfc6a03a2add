//! `metering admin` as a person or a script runs it: the real program, in its own directory.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod account;
mod backup;
mod catalogue;
mod doctor;
mod export;
mod failures;
mod fixture;
mod import;
mod key;
mod node;
mod payments;
mod plan;
mod price_matrix;
mod refill;
mod request;
mod running_server;
mod usage;
mod verify;
mod webhook;
