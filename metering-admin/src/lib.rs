//! Administration: the use cases of operators, over HTTP and on the command line, and the calls of their API.
//!
//! Nothing here checks permissions: the caller does. Every change takes an [`Action`], which says who makes it and why,
//! and is logged in its own transaction (ADR 42).
//!
//! An [`AdminCall`] is declared once, in [`calls`]; the server's router and OpenAPI document, the command line and the
//! console's labels follow from it.
#![deny(missing_docs)]

mod accounts;
mod action;
mod administration;
mod attention;
mod audited;
mod call;
pub mod calls;
mod catalogue;
mod child_accounts;
mod configuration;
mod erasure;
mod error;
mod imports;
mod keys;
mod labels;
mod log;
mod members;
mod notes;
mod operators;
pub mod payments;
mod plans;
mod prices;
mod refills;
mod rehearsal;
mod reports;
mod repricing;
mod requests;
mod search;
mod webhooks;
pub mod wire;

pub use action::Action;
pub use administration::Administration;
pub use attention::runways_after;
pub use call::{AdminCall, Audit, Authority, Body, Document, Outcome, Running, Schema, Viewer, Visitor};
pub use catalogue::{check_catalogue, compare_catalogues};
pub use error::AdminError;
pub use labels::labels;
pub use metering_core::wire::call::{Bounded, Call, EntryNumber, Parameters, RequestParameters, target};
pub use prices::SWITCH_LEAD;
