//! When a witness cosigns: only a checkpoint that extends the last one it cosigned, so that a log cannot show two
//! histories.

use sha2::{Digest, Sha256};

use crate::checkpoint::SignedCheckpoint;
use crate::note::{Cosigner, NoteError, SignatureKind, VerifierKey};
use crate::tree::{TreeHash, verify_consistency};
use crate::witness::request::AddCheckpoint;

/// A witness: a name with a key, which cosigns.
#[derive(Clone, Debug)]
pub struct Witness {
    cosigner: Cosigner,
}

/// A log that a witness follows, and the last checkpoint that the witness saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessedLog {
    /// The keys of the log. Only keys of kind [`SignatureKind::Note`] count.
    pub keys: Vec<VerifierKey>,
    /// The last tree head that was cosigned, if any.
    pub latest: Option<Seen>,
}

/// The head of a tree that was cosigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How many leaves the tree has.
    pub size: u64,
    /// The root of the tree.
    pub root: TreeHash,
}

/// A checkpoint that the witness cosigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The head to store for [`WitnessedLog::latest`].
    pub seen: Seen,
    /// The checkpoint with the log's signatures and the cosignature, to keep and to serve at [`checkpoint_path`].
    pub checkpoint: SignedCheckpoint,
    /// The body of the response, with status 200.
    pub body: String,
}

/// Why the witness does not cosign. Nothing is stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The body is not a valid request, or its old size exceeds the checkpoint's.
    #[error("bad request: {0}")]
    BadRequest(&'static str),
    /// The witness does not follow this log.
    #[error("this witness does not follow the log {0:?}")]
    UnknownLog(String),
    /// No key of the log signed it, or a signature is not valid.
    #[error("not signed by the log: {0}")]
    NotSigned(NoteError),
    /// The old size is not the last one that the witness cosigned. Send a proof from there.
    #[error("the last checkpoint cosigned has {size} leaves")]
    Conflict {
        /// The size that was cosigned last; 0 if none.
        size: u64,
    },
    /// The checkpoint does not extend the last one cosigned: the log was forked or rewritten, or the proof is wrong.
    #[error("the checkpoint does not continue the last one cosigned, or its proof is wrong")]
    Inconsistent,
}

impl Refusal {
    /// The status of the response.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::NotSigned(_) => 403,
            Self::UnknownLog(_) => 404,
            Self::Conflict { .. } => 409,
            Self::Inconsistent => 422,
        }
    }

    /// The media type of the body.
    #[must_use]
    pub fn content_type(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "text/x.tlog.size",
            _ => "text/plain; charset=utf-8",
        }
    }

    /// The body of the response.
    #[must_use]
    pub fn body(&self) -> String {
        match self {
            Self::Conflict { size } => format!("{size}\n"),
            other => format!("{other}\n"),
        }
    }
}

impl Witness {
    /// A witness with this name and key.
    #[must_use]
    pub fn new(cosigner: Cosigner) -> Self {
        Self { cosigner }
    }

    /// The verifier key of its cosignatures, to publish.
    #[must_use]
    pub fn verifier(&self) -> &VerifierKey {
        self.cosigner.verifier()
    }

    /// Decides on the body of `POST add-checkpoint`; `follows` returns what the witness knows about the log with an
    /// origin.
    ///
    /// **Persist [`Accepted::seen`] before you respond**, and decide nothing else about this log in between: otherwise
    /// two concurrent requests could make the witness cosign a fork.
    ///
    /// # Errors
    /// When the checkpoint does not provably extend the last one cosigned.
    pub fn add_checkpoint(
        &self,
        body: &str,
        follows: impl FnOnce(&str) -> Option<WitnessedLog>,
        now_seconds: u64,
    ) -> Result<Accepted, Refusal> {
        let malformed = "expected 'old SIZE', the hashes of a consistency proof, an empty line and a checkpoint";
        let request: AddCheckpoint = body.parse().map_err(|_| Refusal::BadRequest(malformed))?;
        let origin = request.checkpoint.checkpoint().origin();
        let mut log = follows(origin).ok_or_else(|| Refusal::UnknownLog(origin.to_owned()))?;
        log.keys.retain(|key| key.kind() == SignatureKind::Note);
        request.checkpoint.note().verify(&log.keys).map_err(Refusal::NotSigned)?;
        let seen = continues(&request, log.latest)?;

        let mut checkpoint = request.checkpoint;
        let signature = self.cosigner.cosign(checkpoint.note().text(), now_seconds);
        let body = format!("{signature}\n");
        checkpoint.note_mut().keep(&log.keys);
        checkpoint.note_mut().add(signature);
        Ok(Accepted { seen, checkpoint, body })
    }
}

/// Whether a signed checkpoint continues the last one, checked in the specification's order.
fn continues(request: &AddCheckpoint, latest: Option<Seen>) -> Result<Seen, Refusal> {
    let checkpoint = request.checkpoint.checkpoint();
    let new = Seen { size: checkpoint.size(), root: checkpoint.root() };
    if request.old_size > new.size {
        return Err(Refusal::BadRequest("the old size is over the size of the checkpoint"));
    }
    let old = latest.unwrap_or(Seen { size: 0, root: TreeHash::EMPTY_TREE });
    if request.old_size != old.size {
        return Err(Refusal::Conflict { size: old.size });
    }
    verify_consistency(old.size, old.root, new.size, new.root, &request.proof).map_err(|_| Refusal::Inconsistent)?;
    Ok(new)
}

/// Where a witness serves the last checkpoint of a log that it cosigned, below its monitoring prefix.
#[must_use]
pub fn checkpoint_path(origin: &str) -> String {
    format!("{}/checkpoint", hex::encode(Sha256::digest(origin.as_bytes())))
}
