//! The log of every posting (ADR 55): serving it, and in a process that has its key, appending to it and signing it.
//!
//! Every node serves what is in the store. One node at a time appends.

mod last_signed;
mod posting_log;
mod serve;
mod task;
#[cfg(test)]
mod test_epoch;
mod witnesses;

pub(crate) use posting_log::PostingLog;
pub(crate) use task::LogTask;
