//! Verifier keys: a public key with its name and its kind of signature.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::keys::{BadSignature, PublicKey};
use crate::note::key_name::KeyName;
use crate::note::signature::NoteSignature;

/// What a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignatureKind {
    /// `0x01`: the text of a note, with Ed25519. Logs sign so.
    Note,
    /// `0x04`: a checkpoint and a time, with Ed25519 (`cosignature/v1`). Witnesses sign so.
    Cosignature,
}

impl SignatureKind {
    fn byte(self) -> u8 {
        match self {
            Self::Note => 1,
            Self::Cosignature => 4,
        }
    }
}

/// A verifier key, also called *vkey*: `<key name>+<key ID>+<kind and public key>`.
///
/// ```
/// use metering_log::note::{SignedNote, VerifierKey};
///
/// // The example of signed-note.
/// let key: VerifierKey = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k".parse()?;
/// let note = SignedNote::parse(
///     "This is an example message.\n\n— example.com/foo \
///     Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n",
/// )?;
/// assert_eq!(note.verify(&[key])?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VerifierKey {
    name: KeyName,
    kind: SignatureKind,
    key: PublicKey,
    id: u32,
}

/// The text is not a usable verifier key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedVerifierKey {
    /// The text is malformed.
    #[error("not a verifier key: expected NAME+ID+KEY, with 8 lowercase hexadecimal digits and base64")]
    Form,
    /// Its kind of signature is not one of those that use Ed25519.
    #[error("the verifier key is of kind {0:#04x}; only Ed25519 (0x01) and cosignature/v1 (0x04) are supported")]
    Kind(u8),
    /// Its ID belongs to another name, kind or key: a part was mistyped.
    #[error("the ID of the verifier key does not belong to its name and key; copy it again")]
    Id,
}

impl VerifierKey {
    /// The verifier key of a public key.
    #[must_use]
    pub fn new(name: KeyName, kind: SignatureKind, key: PublicKey) -> Self {
        let hash = Sha256::new().chain_update(name.as_str()).chain_update([b'\n', kind.byte()]);
        let [a, b, c, d, ..] = <[u8; 32]>::from(hash.chain_update(key.to_bytes()).finalize());
        Self { name, kind, key, id: u32::from_be_bytes([a, b, c, d]) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// Its ID.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What it signs.
    #[must_use]
    pub fn kind(&self) -> SignatureKind {
        self.kind
    }

    /// The public key.
    #[must_use]
    pub fn key(&self) -> PublicKey {
        self.key
    }

    /// Whether a signature line names this key.
    #[must_use]
    pub fn names(&self, signature: &NoteSignature) -> bool {
        *signature.name() == self.name && signature.key_id() == self.id
    }

    /// Checks a signature of this key over the text of a note. Returns the time of a cosignature, in seconds since 1970.
    ///
    /// # Errors
    /// When the signature is not valid.
    pub fn verify(&self, text: &str, signature: &[u8]) -> Result<Option<u64>, BadSignature> {
        match self.kind {
            SignatureKind::Note => self.key.verify(text.as_bytes(), signature).map(|()| None),
            SignatureKind::Cosignature => {
                let (time, signature) = signature.split_first_chunk::<8>().ok_or(BadSignature)?;
                let seconds = u64::from_be_bytes(*time);
                if seconds > MAX_TIMESTAMP {
                    return Err(BadSignature);
                }
                self.key.verify(cosigned(text, seconds).as_bytes(), signature).map(|()| Some(seconds))
            }
        }
    }
}

/// The latest valid time of a cosignature.
const MAX_TIMESTAMP: u64 = u64::MAX >> 1;

/// The message that a cosignature signs (`tlog-cosignature`, "Ed25519 signed message").
pub(crate) fn cosigned(text: &str, seconds: u64) -> String {
    format!("cosignature/v1\ntime {seconds}\n{text}")
}

impl FromStr for VerifierKey {
    type Err = MalformedVerifierKey;

    fn from_str(text: &str) -> Result<Self, MalformedVerifierKey> {
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(MalformedVerifierKey::Form);
        };
        let name = KeyName::new(name).map_err(|_| MalformedVerifierKey::Form)?;
        let bytes = STANDARD.decode(key).map_err(|_| MalformedVerifierKey::Form)?;
        let (kind, key) = bytes.split_first().ok_or(MalformedVerifierKey::Form)?;
        let kind = match kind {
            1 => SignatureKind::Note,
            4 => SignatureKind::Cosignature,
            other => return Err(MalformedVerifierKey::Kind(*other)),
        };
        let key = <&[u8; 32]>::try_from(key).map_err(|_| MalformedVerifierKey::Form)?;
        let key = PublicKey::from_bytes(key).map_err(|_| MalformedVerifierKey::Form)?;
        let verifier = Self::new(name, kind, key);
        if id.len() != 8 || !id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(MalformedVerifierKey::Form);
        }
        if id == format!("{:08x}", verifier.id) { Ok(verifier) } else { Err(MalformedVerifierKey::Id) }
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = [[self.kind.byte()].as_slice(), &self.key.to_bytes()].concat();
        write!(f, "{}+{:08x}+{}", self.name, self.id, STANDARD.encode(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";

    #[test]
    fn keys_round_trip() {
        let key: VerifierKey = EXAMPLE.parse().unwrap();
        assert_eq!((key.name().as_str(), key.id(), key.kind()), ("example.com/foo", 0x530d_903a, SignatureKind::Note));
        assert_eq!(key.to_string(), EXAMPLE);
        let cosigner = VerifierKey::new(key.name().clone(), SignatureKind::Cosignature, key.key());
        assert_ne!(cosigner.id(), key.id());
        assert_eq!(cosigner.to_string().parse(), Ok(cosigner));
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, expected) in [
            (String::new(), MalformedVerifierKey::Form),
            ("example.com/foo+530d903a".to_owned(), MalformedVerifierKey::Form),
            (EXAMPLE.replace("530d903a", "530D903A"), MalformedVerifierKey::Form),
            (EXAMPLE.replace("530d903a", "30d903a"), MalformedVerifierKey::Form),
            (EXAMPLE.replace("530d903a", "530d903b"), MalformedVerifierKey::Id),
            (EXAMPLE.replace("foo", "bar"), MalformedVerifierKey::Id),
            (EXAMPLE.replace("+Ae", "+Be"), MalformedVerifierKey::Kind(5)),
            (format!("{EXAMPLE}AAAA"), MalformedVerifierKey::Form),
            (format!("{EXAMPLE}\n"), MalformedVerifierKey::Form),
        ] {
            assert_eq!(text.parse::<VerifierKey>(), Err(expected), "{text:?}");
        }
    }
}
