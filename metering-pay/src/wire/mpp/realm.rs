//! Whom a challenge is from.

use std::str::FromStr;

use metering_core::text_traits;

/// The issuer of a challenge, such as the service's host name: up to 255 printable ASCII characters, without `"`, `\`
/// and `|`, which have a meaning where it is used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Realm(String);

/// The text is not a realm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 255 printable ASCII characters, without double quotes, backslashes and vertical bars")]
pub struct RealmError;

impl Realm {
    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Realm {
    type Err = RealmError;

    fn from_str(text: &str) -> Result<Self, RealmError> {
        let fits = |byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'|');
        if (1..=255).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(RealmError)
        }
    }
}

text_traits!(Realm: Display);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn realms_have_nothing_that_needs_quoting() {
        assert!("api.example.com:8080".parse::<Realm>().is_ok());
        for text in ["", "a\"b", "a\\b", "a|b", "a\r\nb", "ä", &"a".repeat(256)] {
            assert_eq!(text.parse::<Realm>(), Err(RealmError), "{text}");
        }
    }
}
