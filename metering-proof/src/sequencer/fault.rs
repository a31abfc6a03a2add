//! Why a step of the sequencer fails.

use metering_core::StoreError;

use crate::lookup::LogReadError;

/// Why a step failed. Unless the error of the store says otherwise, nothing was appended; the next step reads the log again.
#[derive(Debug, thiserror::Error)]
pub enum SequencerError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] LogReadError),
    /// The log is inconsistent, or a posting cannot be appended to it.
    #[error("log epoch {epoch} of {size} leaves cannot be continued: {problem}; run `metering admin verify`")]
    Damaged {
        /// The epoch's number.
        epoch: u32,
        /// How many leaves it has.
        size: u64,
        /// What does not fit.
        problem: String,
    },
}
