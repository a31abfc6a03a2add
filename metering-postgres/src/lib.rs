//! The backend for several nodes: one PostgreSQL database, or an engine that speaks its protocol.
//!
//! A batch of charges is one transaction in two round trips, no matter how large it is: the first locks the accounts'
//! rows, in order, and reads what the charge rule needs; the second writes the decisions and commits. All other writes
//! are serialized (see `serialized`), so each sees the effects of all earlier ones. If a `COMMIT` gets no response, its
//! outcome is looked up, not guessed (see `outcome`).
#![deny(missing_docs)]

mod account_store;
mod accounts;
mod activity;
mod challenges;
mod check;
mod claims;
mod commit;
mod connect;
mod daily_totals;
mod entry;
mod error;
mod expiry;
mod export;
mod finish;
mod hosts;
mod import;
mod known;
mod ledger;
mod migrations;
mod outcome;
mod owners;
mod payment_store;
mod payments;
mod plans;
mod quotes;
mod recipients;
mod retry;
mod rows;
mod scan_marks;
mod serialized;
mod session;
mod settings;
mod settlements;
mod signup_store;
mod signups;
mod start;
mod store;
mod sum;
mod tail;
mod tls;
mod unreadable;
mod usage;
mod value;
mod verify;
mod wait;
mod wallets;

pub use connect::{PostgresConfig, PostgresUrlError};
pub use import::TargetInspection;
pub use store::PostgresStore;

/// Runs the program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
