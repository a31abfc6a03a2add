//! Checkpoints (C2SP `tlog-checkpoint`): the signed head of a log's tree, and whose signatures a reader trusts.

mod head;
mod policy;
mod proof_file;
mod signed;

pub use head::{Checkpoint, MalformedCheckpoint};
pub use policy::{Policy, PolicyError, Trusted};
pub use proof_file::{LogProof, LogProofError};
pub use signed::{CheckpointError, SignedCheckpoint};
