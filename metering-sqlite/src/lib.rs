//! The embedded backend: one SQLite file, opened by a server, by commands beside it, or by the service that embeds it.
//!
//! Write-ahead log with `synchronous = FULL`, so that what was answered survives a power cut; one thread that writes
//! and commits batches; readers that never block it. Several processes may use the file at once: each sees what the
//! others committed from its next transaction on.
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
mod moving;
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
pub use moving::Moved;
pub use store::SqliteStore;
