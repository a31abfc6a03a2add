//! Signed notes (C2SP `signed-note`): a text with signatures of several keys below, and the keys that verify them.

mod cosigner;
mod key_name;
mod signature;
mod signed_note;
mod signer;
mod verifier;

pub use cosigner::Cosigner;
pub use key_name::{KeyName, MalformedKeyName};
pub use signature::{MalformedSignature, NoteSignature};
pub use signed_note::{MAX_SIGNATURES, NoteError, SignedNote, VerifiedSignature};
pub use signer::NoteSigner;
pub use verifier::{MalformedVerifierKey, SignatureKind, VerifierKey};
