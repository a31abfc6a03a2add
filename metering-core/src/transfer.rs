//! Moving a whole store from one backend to another, and proving that nothing was lost or changed.
//!
//! A backend that can be moved from tells all that it holds, as [`Record`]s in an order that is the same for every
//! backend ([`Export`]); one that can be moved to takes them ([`Import`]). Reading, writing and the state of a move that
//! was interrupted are the backends' business; what is copied, in which order, and what counts as equal is decided here.
//!
//! The proof reads both stores from the beginning to the end and compares them record by record ([`compare`]). It trusts
//! nothing that the copying said.

mod comparison;
mod copying;
mod place;
mod record;
mod section;
mod sums;
#[cfg(test)]
mod tests;
mod traits;

pub use comparison::{Comparison, Difference, SectionComparison, compare};
pub use copying::{copy, survey};
pub use place::{Part, Place};
pub use record::{
    AccountRecord, ActivityRecord, AnswerRecord, KeyRecord, LedgerRecord, Record, ScanMark, SolutionRecord, WalletLink,
};
pub use section::Section;
pub use sums::{CreditSum, Sums};
pub use traits::{Export, Import, SourceId, Standing};

/// Records that are read, and written, at one time: enough for few round trips, few enough for small transactions.
const PAGE: u32 = 5_000;

/// Is told how many records of a section are done.
pub type Progress<'p> = &'p mut (dyn FnMut(Section, u64) + Send);
