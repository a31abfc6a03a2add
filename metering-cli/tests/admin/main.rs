//! `metering admin` as a person or a script runs it: the real program, in a directory of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod account;
mod backup;
mod beside_a_server;
mod desk;
mod export;
mod failures;
mod node;
mod payments;
mod plan;
mod price_matrix;
mod usage;
mod verify;
