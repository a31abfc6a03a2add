//! The backend for several nodes: one PostgreSQL database, or an engine that speaks its protocol.
//!
//! A batch of charges is one transaction in two round trips, no matter how large it is: the first locks the accounts'
//! rows, in order, and reads what the charge rule needs; the second writes the decisions and commits. All other writes
//! are serialized (see `serialized`), so each sees the effects of all earlier ones. If a `COMMIT` gets no response, its
//! outcome is looked up, not guessed (see `outcome`).
#![deny(missing_docs)]

mod access;
mod charging;
mod connection;
mod error;
mod migrations;
mod money;
mod payments;
mod rows;
mod signups;
mod store;
mod transactions;
mod transfer;
mod usage;

pub use connection::connect::{PostgresConfig, PostgresUrlError};
pub use store::PostgresStore;
pub use transfer::import::TargetInspection;

/// Runs the program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
