//! Moves a whole store from one backend to another, and proves that nothing was lost or changed.
//!
//! A source backend exports all its data as [`Record`]s, in an order that is the same for every backend ([`Export`]); a
//! target backend imports them ([`Import`]). [`page`] and [`write()`] do so for what backends store alike; a backend adds
//! what it stores in its own way, and tracks interrupted moves. This module decides what is copied, in which order, and
//! what counts as equal.
//!
//! The proof reads both stores in full and compares them record by record ([`compare`]). It relies on nothing that the
//! copying reported.

mod comparison;
mod copying;
mod export;
mod import;
mod position;
mod record;
mod rows;
mod section;
mod source;
mod sums;
#[cfg(test)]
mod tests;
mod traits;

pub use comparison::{Comparison, Difference, SectionComparison, compare};
pub use copying::{copy, survey};
pub use export::{count, page};
pub use import::write;
pub use position::{Part, Position};
pub use record::{
    AccountRecord, ActivityRecord, DeliveryRecord, GasPlacesRecord, IdempotencyRecord, LedgerRecord, ScanMark,
    SolutionRecord, VolumeRecord, WalletLink,
};
pub use rows::tables;
pub use section::{Record, Section};
pub use source::Source;
pub use sums::Sums;
pub use traits::{Export, Import, TargetState};

/// Records per read and write: large enough for few round trips, small enough for short transactions.
const PAGE: u32 = 5_000;

/// Called with the number of records of a section that are done so far.
pub type Progress<'p> = &'p mut (dyn FnMut(Section, u64) + Send);
