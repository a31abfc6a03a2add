//! The name of a key, of a log or of a witness.

use std::fmt;
use std::str::FromStr;

/// A valid name for signature lines: not empty, without spaces and `+`. It should be a URL without its scheme, such as
/// `example.com/log`, so that it is unique.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName(String);

/// The text cannot be the name of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a key name: it must not be empty, and have no spaces, plus signs or control characters")]
pub struct MalformedKeyName;

impl KeyName {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is not valid in a signature line.
    pub fn new(name: impl Into<String>) -> Result<Self, MalformedKeyName> {
        let name = name.into();
        let unfit = |c: char| c.is_whitespace() || c < ' ' || c == '+';
        if name.is_empty() || name.contains(unfit) { Err(MalformedKeyName) } else { Ok(Self(name)) }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyName {
    type Err = MalformedKeyName;

    fn from_str(name: &str) -> Result<Self, MalformedKeyName> {
        Self::new(name)
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_into_signature_lines() {
        for name in ["example.com/log", "é", "oid/1.3.6"] {
            assert_eq!(KeyName::new(name).map(|name| name.to_string()), Ok(name.to_owned()));
        }
        for name in ["", " ", "a b", "a+b", "a\n", "a\u{a0}b", "a\u{2003}b", "\u{1}"] {
            assert_eq!(KeyName::new(name), Err(MalformedKeyName), "{name:?}");
        }
    }
}
