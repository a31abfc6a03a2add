//! Witnesses (C2SP `tlog-witness`): the request to one, and when it cosigns.

mod request;
mod rule;

pub use request::{AddCheckpoint, MAX_PROOF_HASHES, MalformedAddCheckpoint};
pub use rule::{Accepted, Refusal, Seen, Witness, WitnessedLog, checkpoint_path};
