//! The embedded backend: one SQLite file, used by a server, by admin commands next to it, or by a service that embeds
//! this crate.
//!
//! It uses a write-ahead log with `synchronous = FULL`, so a confirmed charge survives a power cut. One thread does all
//! writes and commits them in batches; readers never block it. Several processes may use the file at once: each sees
//! the others' commits from its next transaction on.
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
mod transfer;
mod usage;

pub use connection::location::{UrlError, path_of_url};
pub use store::SqliteStore;
pub use transfer::moved::Moved;

/// Runs the program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
