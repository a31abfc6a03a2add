//! Signs the text of a note: a log's key with its name.

use crate::keys::PrivateKey;
use crate::note::key_name::KeyName;
use crate::note::signature::NoteSignature;
use crate::note::verifier::{SignatureKind, VerifierKey};

/// A private key with its name, for notes and the checkpoints of a log.
///
/// A log must never sign two checkpoints unless one is a prefix of the other. The caller must ensure this.
#[derive(Clone, Debug)]
pub struct NoteSigner {
    verifier: VerifierKey,
    key: PrivateKey,
}

impl NoteSigner {
    /// A signer of this name.
    #[must_use]
    pub fn new(name: KeyName, key: PrivateKey) -> Self {
        Self { verifier: VerifierKey::new(name, SignatureKind::Note, key.public()), key }
    }

    /// The verifier key of its signatures, to publish.
    #[must_use]
    pub fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    /// Signs a text, which ends with a newline.
    #[must_use]
    pub fn sign(&self, text: &str) -> NoteSignature {
        let signature = self.key.sign(text.as_bytes());
        NoteSignature::new(self.verifier.name().clone(), self.verifier.id(), signature.to_vec())
    }
}
