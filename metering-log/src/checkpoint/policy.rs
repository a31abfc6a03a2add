//! A reader's trust policy: the log's keys, the witnesses, and how many of them must have cosigned a checkpoint.

use crate::checkpoint::head::Checkpoint;
use crate::checkpoint::signed::{CheckpointError, SignedCheckpoint};
use crate::note::{NoteError, SignatureKind, VerifierKey};

/// The signatures that a checkpoint needs before a reader trusts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    origin: String,
    log_keys: Vec<VerifierKey>,
    witnesses: Vec<VerifierKey>,
    quorum: usize,
}

/// A checkpoint that a policy accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trusted {
    /// The head of the tree.
    pub checkpoint: Checkpoint,
    /// The witnesses that cosigned it, and when, in seconds since 1970.
    pub cosigned: Vec<(VerifierKey, u64)>,
}

/// Why a checkpoint is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It is not a signed checkpoint.
    #[error(transparent)]
    Malformed(#[from] CheckpointError),
    /// It belongs to another log.
    #[error("the checkpoint is of the log {found:?}; expected {expected:?}")]
    Origin {
        /// The log that it names.
        found: String,
        /// The log of the policy.
        expected: String,
    },
    /// The log did not sign it, or a signature is not valid.
    #[error("the checkpoint is not signed by its log: {0}")]
    Log(NoteError),
    /// A cosignature of a known witness is not valid.
    #[error("a cosignature of the checkpoint is not valid: {0}")]
    Cosignature(NoteError),
    /// Too few of the known witnesses cosigned it.
    #[error("{found} known witnesses cosigned the checkpoint; {needed} are needed")]
    Witnesses {
        /// How many did.
        found: usize,
        /// How many must.
        needed: usize,
    },
}

impl Policy {
    /// Trusts a log by its keys, without witnesses. Only keys of kind [`SignatureKind::Note`] count.
    #[must_use]
    pub fn new(origin: impl Into<String>, log_keys: Vec<VerifierKey>) -> Self {
        let log_keys = of_kind(log_keys, SignatureKind::Note);
        Self { origin: origin.into(), log_keys, witnesses: Vec::new(), quorum: 0 }
    }

    /// Requires cosignatures from at least `quorum` of these witnesses.
    #[must_use]
    pub fn with_witnesses(self, witnesses: Vec<VerifierKey>, quorum: usize) -> Self {
        Self { witnesses: of_kind(witnesses, SignatureKind::Cosignature), quorum, ..self }
    }

    /// The log.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Reads a checkpoint, and checks its signatures.
    ///
    /// # Errors
    /// When the policy does not accept it.
    pub fn open(&self, text: &str) -> Result<Trusted, PolicyError> {
        self.check(&text.parse::<SignedCheckpoint>().map_err(PolicyError::Malformed)?)
    }

    /// Checks the signatures of a checkpoint.
    ///
    /// # Errors
    /// When the policy does not accept it.
    pub fn check(&self, signed: &SignedCheckpoint) -> Result<Trusted, PolicyError> {
        let checkpoint = signed.checkpoint();
        if checkpoint.origin() != self.origin {
            let (found, expected) = (checkpoint.origin().to_owned(), self.origin.clone());
            return Err(PolicyError::Origin { found, expected });
        }
        signed.note().verify(&self.log_keys).map_err(PolicyError::Log)?;
        let cosigned: Vec<_> = match signed.note().verify(&self.witnesses) {
            Ok(verified) => verified.iter().filter_map(|one| Some((one.key.clone(), one.seconds?))).collect(),
            Err(NoteError::Unsigned) => Vec::new(),
            Err(error) => return Err(PolicyError::Cosignature(error)),
        };
        if cosigned.len() < self.quorum {
            return Err(PolicyError::Witnesses { found: cosigned.len(), needed: self.quorum });
        }
        Ok(Trusted { checkpoint: checkpoint.clone(), cosigned })
    }
}

fn of_kind(mut keys: Vec<VerifierKey>, kind: SignatureKind) -> Vec<VerifierKey> {
    keys.retain(|key| key.kind() == kind);
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::PrivateKey;
    use crate::note::{Cosigner, KeyName, NoteSigner, SignedNote};
    use crate::tree::TreeHash;

    fn log() -> NoteSigner {
        NoteSigner::new(KeyName::new("example.com/log").unwrap(), PrivateKey::from_seed(&[1; 32]))
    }

    fn witness(seed: u8) -> Cosigner {
        Cosigner::new(KeyName::new(format!("example.com/w{seed}")).unwrap(), PrivateKey::from_seed(&[seed; 32]))
    }

    fn signed() -> SignedCheckpoint {
        let checkpoint = Checkpoint::new("example.com/log", 3, TreeHash::leaf(b"root")).unwrap();
        SignedCheckpoint::sign(checkpoint, &log()).unwrap()
    }

    fn cosign(signed: &mut SignedCheckpoint, witness: &Cosigner, seconds: u64) {
        let signature = witness.cosign(signed.note().text(), seconds);
        signed.note_mut().add(signature);
    }

    #[test]
    fn the_log_must_have_signed() {
        let policy = Policy::new("example.com/log", vec![log().verifier().clone()]);
        assert_eq!(policy.open(&signed().to_string()).unwrap().checkpoint, *signed().checkpoint());
        let changed = signed().to_string().replace("\n3\n", "\n4\n");
        assert!(matches!(policy.open(&changed), Err(PolicyError::Log(NoteError::BadSignature(_)))));
        let other = Policy::new("example.com/other", vec![log().verifier().clone()]);
        assert!(matches!(other.open(&signed().to_string()), Err(PolicyError::Origin { .. })));
        let unknown = Policy::new("example.com/log", vec![witness(2).verifier().clone()]);
        assert_eq!(unknown.check(&signed()), Err(PolicyError::Log(NoteError::Unsigned)));
        assert!(matches!(policy.open("text\n"), Err(PolicyError::Malformed(_))));
    }

    /// While a key is being rotated: who knows the old or the new one is not confused by the other.
    #[test]
    fn either_of_two_keys_of_the_log_is_enough() {
        let [old, new] = [1, 9]
            .map(|seed| NoteSigner::new(KeyName::new("example.com/log").unwrap(), PrivateKey::from_seed(&[seed; 32])));
        let mut both = SignedCheckpoint::sign(signed().checkpoint().clone(), &new).unwrap();
        both.also_sign(&old);
        both.also_sign(&old);
        assert_eq!(both.note().signatures().len(), 2);
        assert!(both.note().names(old.verifier()) && !signed().note().names(new.verifier()));
        let policy = |keys: &[&NoteSigner]| {
            Policy::new("example.com/log", keys.iter().map(|key| key.verifier().clone()).collect())
        };
        for known in [&[&old][..], &[&new], &[&old, &new], &[&new, &old]] {
            assert_eq!(policy(known).open(&both.to_string()).unwrap().checkpoint, *both.checkpoint());
        }
        // Before the rotation began, or after it ended, one of two known keys signed.
        assert!(policy(&[&old, &new]).check(&signed()).is_ok());
        assert_eq!(policy(&[&new]).check(&signed()), Err(PolicyError::Log(NoteError::Unsigned)));
        let third = NoteSigner::new(KeyName::new("example.com/log").unwrap(), PrivateKey::from_seed(&[8; 32]));
        assert_eq!(policy(&[&third]).check(&both), Err(PolicyError::Log(NoteError::Unsigned)));
        // A wrong signature of a known key is refused, even beside a valid one of another known key.
        let other = SignedNote::new("example.com/log\n4\n").unwrap();
        both.note_mut().add(old.sign(other.text()));
        assert!(policy(&[&new]).check(&both).is_ok(), "nobody asked for the old key");
        assert!(matches!(policy(&[&new, &old]).check(&both), Err(PolicyError::Log(NoteError::BadSignature(_)))));
    }

    #[test]
    fn different_known_witnesses_count() {
        let known = [2, 3].map(|seed| witness(seed).verifier().clone());
        let policy = Policy::new("example.com/log", vec![log().verifier().clone()]).with_witnesses(known.to_vec(), 2);
        let mut checkpoint = signed();
        cosign(&mut checkpoint, &witness(2), 1_700_000_000);
        cosign(&mut checkpoint, &witness(2), 1_700_000_001);
        cosign(&mut checkpoint, &witness(4), 1_700_000_000);
        assert_eq!(policy.check(&checkpoint), Err(PolicyError::Witnesses { found: 1, needed: 2 }));
        cosign(&mut checkpoint, &witness(3), 1_700_000_002);
        let trusted = policy.open(&checkpoint.to_string()).unwrap();
        let expected = [(known[0].clone(), 1_700_000_001), (known[1].clone(), 1_700_000_002)];
        assert_eq!(trusted.cosigned, expected);
    }

    #[test]
    fn wrong_cosignatures_of_known_witnesses_are_refused() {
        let known = vec![witness(2).verifier().clone()];
        let policy = Policy::new("example.com/log", vec![log().verifier().clone()]).with_witnesses(known, 0);
        let mut checkpoint = signed();
        let signature = witness(2).cosign("example.com/log\n4\n", 1_700_000_000);
        checkpoint.note_mut().add(signature);
        assert!(matches!(policy.check(&checkpoint), Err(PolicyError::Cosignature(_))));
        // A time that no cosignature can have.
        let signature = witness(2).cosign(checkpoint.note().text(), 1 << 63);
        checkpoint.note_mut().add(signature);
        assert!(matches!(policy.check(&checkpoint), Err(PolicyError::Cosignature(_))));
    }

    /// The keys of the example in `tlog-cosignature` were never published, so its checkpoint and cosignature are only
    /// read and written here.
    #[test]
    fn the_example_of_the_text_round_trips() {
        let example = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\
            — example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+\
            xeMcTOAYQ8=\n— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZ\
            qhf5nNo0xUe+mbIUBkBIfZ+qnA==\n";
        let signed: SignedCheckpoint = example.parse().unwrap();
        assert_eq!(signed.to_string(), example);
        let [_, cosignature] = signed.note().signatures() else { panic!("two signatures") };
        assert_eq!(cosignature.signature().len(), 8 + 64);
        assert_eq!(cosignature.signature()[..8], 1_679_315_147_u64.to_be_bytes());
    }
}
