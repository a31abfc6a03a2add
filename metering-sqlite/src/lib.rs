//! The embedded backend: one SQLite file, used by a server, by admin commands next to it, or by a service that embeds
//! this crate.
//!
//! It uses a write-ahead log with `synchronous = FULL`, so a confirmed charge survives a power cut. One thread does all
//! writes and commits them in batches; readers never block it. Several processes may use the file at once: each sees
//! the others' commits from its next transaction on.
#![deny(missing_docs)]

mod accounts;
mod activity;
mod backup;
mod cache;
mod challenges;
mod claims;
mod commit;
mod connection;
mod error;
mod expiry;
mod export;
mod files;
mod health;
mod integrity;
mod ledger;
mod location;
mod migrations;
mod moved;
mod moving;
mod owners;
mod payment_store;
mod payments;
mod plans;
mod quotes;
mod readers;
mod recipients;
mod recovery;
mod rows;
mod scan_marks;
mod settlements;
mod signup_store;
mod signups;
mod store;
mod sum;
mod unreadable;
mod usage;
mod verify;
mod wallets;
mod writer;

pub use location::{UrlError, path_of_url};
pub use moved::Moved;
pub use store::SqliteStore;

/// Runs the program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
