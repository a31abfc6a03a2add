//! The visible part of a key's secret.

use std::fmt::{self, Write};
use std::str::FromStr;

use crate::access::key::{ApiKey, ApiKeyKind, KeyHash};
use crate::secret::SecretKind;

/// The visible part of a key's secret: the prefix of all secrets, and the last four characters. It lets the owner tell
/// which key a program has.
///
/// In a key of ours these are four of the six digits of the checksum: less than 24 bits about the 190 random ones. In an
/// imported key they are 16 of 384 bits.
///
/// ```
/// use metering_core::access::KeyHint;
/// use metering_core::{ApiKey, SystemRandomness};
///
/// let key = ApiKey::generate(&SystemRandomness);
/// assert_eq!(key.hint().to_string(), format!("sk_live_…{}", &key.expose()[42..]));
/// assert_eq!(key.hint().to_string().parse(), Ok(key.hint()));
/// assert_eq!(key.hash().hint(), Some(key.hint()));
/// assert!("sk_live_…ab1".parse::<KeyHint>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHint([u8; 4]);

/// The text is not the hint of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be sk_live_… and the last four letters or digits of the key")]
pub struct KeyHintError;

impl KeyHint {
    fn of_end(end: [u8; 4]) -> Option<Self> {
        end.iter().all(u8::is_ascii_alphanumeric).then_some(Self(end))
    }
}

impl ApiKey {
    /// Its hint.
    #[must_use]
    pub fn hint(&self) -> KeyHint {
        KeyHint(ApiKeyKind::shown_end(self.expose()))
    }
}

impl KeyHash {
    /// The key's hint; `None` if the hash was made of bytes.
    #[must_use]
    pub fn hint(&self) -> Option<KeyHint> {
        KeyHint::of_end(self.end)
    }

    /// The hash of a key with this hint.
    #[must_use]
    pub const fn with_hint(mut self, hint: KeyHint) -> Self {
        self.end = hint.0;
        self
    }
}

impl fmt::Display for KeyHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ApiKeyKind::PREFIX)?;
        f.write_char('…')?;
        self.0.iter().try_for_each(|byte| f.write_char(char::from(*byte)))
    }
}

impl FromStr for KeyHint {
    type Err = KeyHintError;

    fn from_str(text: &str) -> Result<Self, KeyHintError> {
        let end = text.strip_prefix(ApiKeyKind::PREFIX).and_then(|rest| rest.strip_prefix('…'));
        let end = end.and_then(|end| end.as_bytes().try_into().ok());
        end.and_then(Self::of_end).ok_or(KeyHintError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_of_bytes_has_no_hint_until_it_gets_one() {
        let (hash, hint) = (KeyHash::from_bytes([7; 32]), "sk_live_…ab12".parse().unwrap());
        assert_eq!(hash.hint(), None);
        assert_eq!(hash.with_hint(hint).hint(), Some(hint));
        assert_eq!(hash.with_hint(hint), hash, "it is the same hash");
        for text in ["", "ab12", "sk_live_ab12", "sk_live_…ab1", "sk_live_…ab123", "sk_live_…ab 2", "sk_live_…äb1"]
        {
            assert_eq!(text.parse::<KeyHint>(), Err(KeyHintError), "{text}");
        }
    }
}
