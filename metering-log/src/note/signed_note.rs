//! Reads and writes notes, and checks which signatures can be trusted.

use std::fmt;

use crate::note::signature::NoteSignature;
use crate::note::verifier::VerifierKey;

/// The maximum number of signatures of a note. The specification requires at least 16.
pub const MAX_SIGNATURES: usize = 100;

/// A text with signatures. The text must not be used before [`SignedNote::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedNote {
    text: String,
    signatures: Vec<NoteSignature>,
}

/// A verified signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedSignature<'a> {
    /// The key that signed.
    pub key: &'a VerifierKey,
    /// The signature line.
    pub signature: &'a NoteSignature,
    /// When a cosignature was made, in seconds since 1970.
    pub seconds: Option<u64>,
}

/// Why a note cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// The text is malformed.
    #[error("not a signed note: expected text, an empty line and signature lines")]
    Malformed,
    /// It has more than [`MAX_SIGNATURES`].
    #[error("the note has more than {MAX_SIGNATURES} signatures")]
    TooManySignatures,
    /// A line claims to be the signature of a known key, but is not valid.
    #[error("the signature of {0} is not valid: the note was changed, or the key's owner made a mistake")]
    BadSignature(String),
    /// No signature was made with a known key.
    #[error("the note is not signed by any of the known keys")]
    Unsigned,
}

impl SignedNote {
    /// A note without signatures yet.
    ///
    /// # Errors
    /// When the text does not end with a newline, or contains control characters.
    pub fn new(text: impl Into<String>) -> Result<Self, NoteError> {
        let text = text.into();
        let clean = text.ends_with('\n') && !text.contains(is_forbidden);
        if clean { Ok(Self { text, signatures: Vec::new() }) } else { Err(NoteError::Malformed) }
    }

    /// Reads a note with at least one signature.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn parse(note: &str) -> Result<Self, NoteError> {
        // The last empty line separates text and signatures; the newline before it belongs to the text.
        let middle = note.rfind("\n\n").ok_or(NoteError::Malformed)?;
        let mut read = Self::new(&note[..=middle])?;
        let lines = note[middle + 2..].strip_suffix('\n').ok_or(NoteError::Malformed)?;
        for line in lines.split('\n') {
            if read.signatures.len() == MAX_SIGNATURES {
                return Err(NoteError::TooManySignatures);
            }
            read.signatures.push(line.parse().map_err(|_| NoteError::Malformed)?);
        }
        Ok(read)
    }

    /// The text, with its last newline.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signatures, none of them checked.
    #[must_use]
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Adds a signature. Replaces any signature of the same key.
    pub fn add(&mut self, signature: NoteSignature) {
        self.signatures.retain(|old| (old.name(), old.key_id()) != (signature.name(), signature.key_id()));
        self.signatures.push(signature);
    }

    /// Whether it has a signature line of this key, checked or not.
    #[must_use]
    pub fn names(&self, key: &VerifierKey) -> bool {
        self.signatures.iter().any(|signature| key.names(signature))
    }

    /// Keeps only the signatures of these keys.
    pub fn keep(&mut self, keys: &[VerifierKey]) {
        self.signatures.retain(|signature| keys.iter().any(|key| key.names(signature)));
    }

    /// The signatures of known keys: at least one, and of each key at most one. Those of unknown keys are ignored.
    ///
    /// # Errors
    /// When there is none, or one of them is not valid.
    pub fn verify<'a>(&'a self, keys: &'a [VerifierKey]) -> Result<Vec<VerifiedSignature<'a>>, NoteError> {
        let mut verified = Vec::<VerifiedSignature<'a>>::new();
        for signature in &self.signatures {
            let Some(key) = keys.iter().find(|key| key.names(signature)) else { continue };
            let seconds = key.verify(&self.text, signature.signature());
            let seconds = seconds.map_err(|_| NoteError::BadSignature(key.name().to_string()))?;
            if verified.iter().all(|other| other.key != key) {
                verified.push(VerifiedSignature { key, signature, seconds });
            }
        }
        if verified.is_empty() { Err(NoteError::Unsigned) } else { Ok(verified) }
    }
}

fn is_forbidden(c: char) -> bool {
    c < ' ' && c != '\n'
}

impl fmt::Display for SignedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| writeln!(f, "{signature}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::PrivateKey;
    use crate::note::key_name::KeyName;
    use crate::note::signer::NoteSigner;

    const EXAMPLE: &str = "This is an example message.\n\n— example.com/foo \
        Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";
    const KEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";

    fn signer(name: &str) -> NoteSigner {
        NoteSigner::new(KeyName::new(name).unwrap(), PrivateKey::from_seed(&[7; 32]))
    }

    #[test]
    fn the_example_of_the_text_verifies() {
        let note = SignedNote::parse(EXAMPLE).unwrap();
        assert_eq!(note.text(), "This is an example message.\n");
        assert_eq!(note.to_string(), EXAMPLE);
        let keys = [KEY.parse::<VerifierKey>().unwrap()];
        assert_eq!(note.verify(&keys).unwrap()[0].seconds, None);
        let changed = SignedNote::parse(&EXAMPLE.replace("example message", "example massage")).unwrap();
        assert_eq!(changed.verify(&keys), Err(NoteError::BadSignature("example.com/foo".to_owned())));
    }

    #[test]
    fn the_last_empty_line_ends_the_text() {
        let mut note = SignedNote::new("one\n\ntwo\n\n\n").unwrap();
        note.add(signer("a").sign(note.text()));
        let read = SignedNote::parse(&note.to_string()).unwrap();
        assert_eq!(read, note);
        assert_eq!(read.text(), "one\n\ntwo\n\n\n");
    }

    #[test]
    fn unknown_signatures_are_ignored_and_wrong_ones_refused() {
        let mut note = SignedNote::new("text\n").unwrap();
        let (known, unknown) = (signer("known"), signer("unknown"));
        note.add(unknown.sign("text\n"));
        assert_eq!(note.verify(&[known.verifier().clone()]), Err(NoteError::Unsigned));
        assert_eq!(note.verify(&[]), Err(NoteError::Unsigned));
        note.add(known.sign("text\n"));
        let keys = [known.verifier().clone()];
        assert_eq!(note.verify(&keys).unwrap().len(), 1);
        // Two signatures of one key count once.
        let twice = format!("{note}{}\n", known.sign("text\n"));
        let twice = SignedNote::parse(&twice).unwrap();
        assert_eq!(twice.signatures().len(), 3);
        assert_eq!(twice.verify(&keys).unwrap().len(), 1);
        // An invalid signature of a known key invalidates the note, even next to a valid one.
        let wrong = format!("{note}{}\n", known.sign("another text\n"));
        let wrong = SignedNote::parse(&wrong).unwrap();
        assert_eq!(wrong.verify(&keys), Err(NoteError::BadSignature("known".to_owned())));
        note.keep(&keys);
        assert_eq!(note.signatures().len(), 1);
    }

    #[test]
    fn other_forms_are_refused() {
        let line = signer("a").sign("text\n");
        for note in [
            String::new(),
            "text\n".to_owned(),
            "text\n\n".to_owned(),
            format!("text\n{line}\n"),
            format!("text\n\n{line}"),
            format!("text\n\n{line}\n\n"),
            format!("text\n\n{line}\nmore\n"),
            format!("te\txt\n\n{line}\n"),
            format!("text\r\n\r\n{line}\r\n"),
        ] {
            assert_eq!(SignedNote::parse(&note), Err(NoteError::Malformed), "{note:?}");
        }
        assert_eq!(SignedNote::new("text"), Err(NoteError::Malformed));
    }

    #[test]
    fn notes_have_a_limited_number_of_signatures() {
        let line = format!("{}\n", signer("a").sign("text\n"));
        assert!(SignedNote::parse(&format!("text\n\n{}", line.repeat(100))).is_ok());
        let more = SignedNote::parse(&format!("text\n\n{}", line.repeat(101)));
        assert_eq!(more, Err(NoteError::TooManySignatures));
    }
}
