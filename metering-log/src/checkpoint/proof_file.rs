//! A proof in a file (C2SP `tlog-proof`): an index, an inclusion proof and a checkpoint, to be verified offline.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::checkpoint::policy::{Policy, PolicyError, Trusted};
use crate::checkpoint::signed::{CheckpointError, SignedCheckpoint};
use crate::decimal;
use crate::tree::{ProofError, TreeHash, verify_inclusion};

const FIRST_LINE: &str = "c2sp.org/tlog-proof@v1";

/// Proof that an entry is in a log. Files of it end in `.tlog-proof`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogProof {
    /// What the application adds, for example to find the entry. Nothing vouches for it.
    pub extra: Option<Vec<u8>>,
    /// The index of the entry.
    pub index: u64,
    /// The inclusion proof.
    pub proof: Vec<TreeHash>,
    /// The head of the tree, signed.
    pub checkpoint: SignedCheckpoint,
}

/// Why a proof is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogProofError {
    /// The text is malformed.
    #[error("not a tlog-proof file: expected the line {FIRST_LINE}, an index, hashes and a checkpoint")]
    Malformed,
    /// The checkpoint cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The policy does not accept the checkpoint.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The entry is not in the log at this index.
    #[error("the entry is not in the log: {0}")]
    Proof(#[from] ProofError),
}

impl LogProof {
    /// Checks that the log of the policy has the entry with this hash at [`LogProof::index`].
    ///
    /// # Errors
    /// When the policy does not accept the checkpoint, or the entry is not in its tree.
    pub fn verify(&self, leaf: TreeHash, policy: &Policy) -> Result<Trusted, LogProofError> {
        let trusted = policy.check(&self.checkpoint)?;
        verify_inclusion(leaf, self.index, trusted.checkpoint.size(), &self.proof, trusted.checkpoint.root())?;
        Ok(trusted)
    }
}

impl FromStr for LogProof {
    type Err = LogProofError;

    fn from_str(text: &str) -> Result<Self, LogProofError> {
        let (head, checkpoint) = text.split_once("\n\n").ok_or(LogProofError::Malformed)?;
        let mut lines = head.split('\n').peekable();
        if lines.next() != Some(FIRST_LINE) {
            return Err(LogProofError::Malformed);
        }
        let extra = lines.peek().copied().and_then(|line| line.strip_prefix("extra "));
        let extra = match extra {
            Some(base64) => {
                lines.next();
                Some(STANDARD.decode(base64).map_err(|_| LogProofError::Malformed)?)
            }
            None => None,
        };
        let index = lines.next().and_then(|line| line.strip_prefix("index ")).and_then(decimal::parse);
        let index = index.ok_or(LogProofError::Malformed)?;
        // No tree has a longer path.
        let proof: Result<Vec<TreeHash>, _> = lines.take(65).map(str::parse).collect();
        let proof = proof.ok().filter(|proof| proof.len() <= 64).ok_or(LogProofError::Malformed)?;
        Ok(Self { extra, index, proof, checkpoint: checkpoint.parse()? })
    }
}

impl fmt::Display for LogProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}")?;
        if let Some(extra) = &self.extra {
            writeln!(f, "extra {}", STANDARD.encode(extra))?;
        }
        writeln!(f, "index {}", self.index)?;
        self.proof.iter().try_for_each(|hash| writeln!(f, "{hash}"))?;
        write!(f, "\n{}", self.checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::head::Checkpoint;
    use crate::keys::PrivateKey;
    use crate::note::{KeyName, NoteSigner};
    use crate::tree::{Leaves, inclusion_proof, read_root};

    fn example() -> (LogProof, [TreeHash; 3], Policy) {
        let leaves = [b"a", b"b", b"c"].map(|entry| TreeHash::leaf(entry));
        let root = read_root(&Leaves(&leaves), 3).unwrap();
        let log = NoteSigner::new(KeyName::new("example.com/log").unwrap(), PrivateKey::from_seed(&[1; 32]));
        let checkpoint = Checkpoint::new("example.com/log", 3, root).unwrap();
        let proof = LogProof {
            extra: None,
            index: 1,
            proof: inclusion_proof(&Leaves(&leaves), 1, 3).unwrap(),
            checkpoint: SignedCheckpoint::sign(checkpoint, &log).unwrap(),
        };
        (proof, leaves, Policy::new("example.com/log", vec![log.verifier().clone()]))
    }

    #[test]
    fn proofs_round_trip_and_verify() {
        let (mut proof, leaves, policy) = example();
        for extra in [None, Some(vec![]), Some(b"salt".to_vec())] {
            proof.extra = extra;
            let read: LogProof = proof.to_string().parse().unwrap();
            assert_eq!(read, proof);
            assert_eq!(read.verify(leaves[1], &policy).unwrap().checkpoint.size(), 3);
            assert_eq!(read.verify(leaves[0], &policy), Err(LogProofError::Proof(ProofError::RootMismatch)));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let text = example().0.to_string();
        let hash = TreeHash::EMPTY_TREE;
        for other in [
            String::new(),
            text.replace("@v1", "@v2"),
            text.replace("index 1\n", ""),
            text.replace("index 1", "index 01"),
            text.replace("index 1", "index -1"),
            text.replace("index 1", "extra ?\nindex 1"),
            text.replace("index 1", "index 1\nextra AA=="),
            text.replace("index 1\n", &format!("index 1\n{}", format!("{hash}\n").repeat(63))),
        ] {
            assert_eq!(other.parse::<LogProof>(), Err(LogProofError::Malformed), "{other}");
        }
        let unsigned = text.split_once("\n—").unwrap().0;
        assert!(matches!(unsigned.parse::<LogProof>(), Err(LogProofError::Checkpoint(_))));
    }
}
