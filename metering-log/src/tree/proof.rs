//! Types shared by inclusion and consistency proofs.

/// Why a proof is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The index or the old size is not within the tree.
    #[error("the proof is for a position outside the tree")]
    OutOfRange,
    /// A proof for these positions has a different number of hashes.
    #[error("the proof has a wrong number of hashes")]
    WrongLength,
    /// The entry, the proof and the root do not belong together.
    #[error("the proof does not lead to the root")]
    RootMismatch,
    /// The old tree is not the beginning of the new one.
    #[error("the old tree is not the beginning of the new tree: the log was forked or rewritten")]
    Inconsistent,
}

/// Where RFC 6962 splits a tree of `leaves` (two or more): the largest power of two below it.
pub(crate) fn split(leaves: u64) -> u64 {
    debug_assert!(leaves > 1);
    1 << (leaves - 1).ilog2()
}
