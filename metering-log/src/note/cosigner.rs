//! Cosigns checkpoints: a witness's key with its name (`tlog-cosignature`).

use crate::keys::PrivateKey;
use crate::note::key_name::KeyName;
use crate::note::signature::NoteSignature;
use crate::note::verifier::{SignatureKind, VerifierKey, cosigned};

/// A private key with its name, for cosignatures. Use the key for nothing else: the signed message does not contain its
/// name.
#[derive(Clone, Debug)]
pub struct Cosigner {
    verifier: VerifierKey,
    key: PrivateKey,
}

impl Cosigner {
    /// A cosigner of this name.
    #[must_use]
    pub fn new(name: KeyName, key: PrivateKey) -> Self {
        Self { verifier: VerifierKey::new(name, SignatureKind::Cosignature, key.public()), key }
    }

    /// The verifier key of its cosignatures, to publish.
    #[must_use]
    pub fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    /// Signs the text of a checkpoint as of a time, in seconds since 1970.
    ///
    /// It states that this is the largest consistent tree that the cosigner has seen: check that first, as
    /// [`Witness`](crate::witness::Witness) does.
    #[must_use]
    pub fn cosign(&self, text: &str, seconds: u64) -> NoteSignature {
        let signature = self.key.sign(cosigned(text, seconds).as_bytes());
        let timestamped = [seconds.to_be_bytes().as_slice(), &signature].concat();
        NoteSignature::new(self.verifier.name().clone(), self.verifier.id(), timestamped)
    }
}
