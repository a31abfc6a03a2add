//! Making receipts and statements, and verifying them.
#![allow(clippy::unwrap_used, reason = "a failed assumption must fail the test")]

mod batch_signer;
mod statements;
