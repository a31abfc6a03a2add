//! The statements that the SQL backends share, each written once.
//!
//! A use case is a script over an [`Executor`]: it reads the facts, calls the pure decision of `metering-core`, and writes
//! the changes. A [`Backend`] runs a script in one transaction. SQLite's executor never waits, so its writer thread polls
//! a script once ([`now`]); PostgreSQL's waits for the network.
//!
//! The charge path is not here: each backend has its own, because that is what makes it fast.

mod alert;
mod backend;
mod boxed;
mod conditions;
mod domain;
mod executor;
mod fault;
mod lend;
mod lineage;
mod progress;
mod record;
mod reversals;
mod row;
mod stores;
mod table;
mod transaction;
mod value;

pub mod accounts;
pub mod audit;
pub mod auto_top_ups;
pub mod browser_sessions;
pub mod buyers;
pub mod challenges;
pub mod child_accounts;
pub mod claims;
pub mod daily_totals;
pub mod deliveries;
pub mod due;
pub mod ended_keys;
pub mod erasure;
pub mod events;
pub mod expiry;
pub mod holds;
pub mod imports;
pub mod key_changes;
pub mod key_holders;
pub mod key_replacement;
pub mod key_status;
pub mod keys;
pub mod ledger;
pub mod lines;
pub mod links;
pub mod log;
pub mod members;
pub mod newest;
pub mod numbered;
pub mod oauth;
pub mod offers;
pub mod operations;
pub mod operators;
pub mod outbox;
pub mod owners;
pub mod payments;
pub mod plans;
pub mod prices;
pub mod probe;
pub mod processors;
pub mod quotes;
pub mod receipts;
pub mod recipients;
pub mod refills;
pub mod reports;
pub mod retention;
pub mod runways;
pub mod scan_marks;
pub mod schema;
pub mod search;
pub mod sessions;
pub mod settlements;
pub mod stored_results;
pub mod sum;
pub mod transfer;
pub mod unclaimed;
pub mod unreadable;
pub mod usage;
pub mod usage_lines;
pub mod usage_sinks;
pub mod verify;
pub mod volumes;
pub mod wallets;
pub mod webhook_deletion;
pub mod webhook_health;
pub mod webhooks;
pub mod words;

pub use backend::{Backend, Call, Script, now, read, snapshot, write};
pub use boxed::{BoxFuture, shared};
pub use executor::{ChargesStopped, Executor, JournalCommit, UsagePart, WriteMode};
pub use fault::{Fault, Result};
pub use metering_core::store::Erased;
pub use record::{Record, delete, find, insert, list, put, set};
pub use row::{Reader, Row};
pub use table::{Column, Table};
pub use transaction::transact;
pub use value::{FromValue, ToValue, Value};

#[doc(hidden)]
pub mod private {
    pub use async_trait::async_trait;
    pub use metering_core;

    pub use crate::lend::Lend;
}
