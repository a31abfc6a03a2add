//! Making receipts, statements and the leaves of the log, and verifying them.
#![allow(clippy::unwrap_used, reason = "a failed assumption must fail the test")]

mod batch_signer;
mod bundle;
mod leaf;
mod statements;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
