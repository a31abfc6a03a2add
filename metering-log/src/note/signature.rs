//! A signature line: who signed, and the bytes of the signature.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::note::key_name::KeyName;

/// A signature line of a note, without its newline: `— <key name> base64(<key ID> || <signature>)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteSignature {
    name: KeyName,
    key_id: u32,
    signature: Vec<u8>,
}

/// The line is not a signature line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a signature line: expected an em dash, a key name and a signature in base64")]
pub struct MalformedSignature;

impl NoteSignature {
    pub(crate) fn new(name: KeyName, key_id: u32, signature: Vec<u8>) -> Self {
        Self { name, key_id, signature }
    }

    /// The name of the key.
    #[must_use]
    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// The ID of the key. Name and ID together identify the key.
    #[must_use]
    pub fn key_id(&self) -> u32 {
        self.key_id
    }

    /// The bytes after the key ID; their format depends on the kind of key.
    #[must_use]
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }
}

impl FromStr for NoteSignature {
    type Err = MalformedSignature;

    fn from_str(line: &str) -> Result<Self, MalformedSignature> {
        let (name, base64) = line.strip_prefix("— ").and_then(|rest| rest.split_once(' ')).ok_or(MalformedSignature)?;
        let name = KeyName::new(name).map_err(|_| MalformedSignature)?;
        let bytes = STANDARD.decode(base64).map_err(|_| MalformedSignature)?;
        match bytes.split_first_chunk::<4>() {
            Some((id, signature)) if !signature.is_empty() => {
                Ok(Self::new(name, u32::from_be_bytes(*id), signature.to_vec()))
            }
            _ => Err(MalformedSignature),
        }
    }
}

impl fmt::Display for NoteSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [self.key_id.to_be_bytes().as_slice(), &self.signature].concat();
        write!(f, "— {} {}", self.name, STANDARD.encode(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip() {
        let line = "— example.com/foo Uw2QOkn8";
        let signature: NoteSignature = line.parse().unwrap();
        assert_eq!((signature.name().as_str(), signature.key_id()), ("example.com/foo", 0x530d_903a));
        assert_eq!(signature.signature(), [0x49, 0xfc]);
        assert_eq!(signature.to_string(), line);
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            "",
            "—",
            "— ",
            "— name",
            "— name ",
            "- name Uw2QOkn8",
            "—name Uw2QOkn8",
            "— a b Uw2QOkn8",
            "— a+b Uw2QOkn8",
            "—  Uw2QOkn8",
            "— name Uw2QOg==",
            "— name Uw2QOkn8\n",
            "— name Uw2QOkn8 ",
            "— name Uw2QOkn",
            " — name Uw2QOkn8",
        ] {
            assert_eq!(line.parse::<NoteSignature>(), Err(MalformedSignature), "{line:?}");
        }
    }
}
