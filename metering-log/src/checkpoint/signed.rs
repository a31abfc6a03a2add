//! A checkpoint with the signatures of its log and of witnesses.

use std::fmt;
use std::str::FromStr;

use crate::checkpoint::head::{Checkpoint, MalformedCheckpoint};
use crate::note::{NoteError, NoteSigner, SignedNote};

/// A signed checkpoint. Its content must not be used before [`Policy::open`](crate::checkpoint::Policy::open).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    checkpoint: Checkpoint,
    note: SignedNote,
}

/// Why a text is not a signed checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// It is no note.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The note is not a checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] MalformedCheckpoint),
}

impl SignedCheckpoint {
    /// Signs a checkpoint as its log.
    ///
    /// # Errors
    /// None is known: a checkpoint is a valid text of a note.
    pub fn sign(checkpoint: Checkpoint, log: &NoteSigner) -> Result<Self, NoteError> {
        let mut note = SignedNote::new(checkpoint.to_string())?;
        note.add(log.sign(note.text()));
        Ok(Self { checkpoint, note })
    }

    /// Adds the signature of another key of its log. While a log's key is being rotated, both sign: readers know one of
    /// them, and ignore the other.
    pub fn also_sign(&mut self, log: &NoteSigner) {
        let signature = log.sign(self.note.text());
        self.note.add(signature);
    }

    /// What was signed.
    #[must_use]
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The note, with all signatures.
    #[must_use]
    pub fn note(&self) -> &SignedNote {
        &self.note
    }

    /// The note, to add signatures. Its text does not change.
    pub fn note_mut(&mut self) -> &mut SignedNote {
        &mut self.note
    }
}

impl FromStr for SignedCheckpoint {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, CheckpointError> {
        let note = SignedNote::parse(text)?;
        Ok(Self { checkpoint: note.text().parse()?, note })
    }
}

impl fmt::Display for SignedCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.note.fmt(f)
    }
}
