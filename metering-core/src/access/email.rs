//! Email addresses.

use std::str::FromStr;

use serde::Serialize;

use crate::access::invisible::is_invisible;
use crate::text_traits::text_traits;

/// An email address, kept as given and compared case-insensitively.
///
/// ```
/// use metering_core::access::Email;
///
/// let email: Email = "Jo@Example.com".parse()?;
/// assert_eq!(email, "jo@example.com".parse()?);
/// assert_eq!(email.to_string(), "Jo@Example.com");
/// assert!("jo@localhost".parse::<Email>().is_err());
/// # Ok::<(), metering_core::access::EmailError>(())
/// ```
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Email(String);

/// The text is not an email address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an email address such as name@example.com")]
pub struct EmailError;

impl Email {
    /// RFC 5321, section 4.5.3.1.3, without the angle brackets.
    const MAX_BYTES: usize = 254;

    /// The address as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The case-folded address: equal for two spellings of the same address.
    #[must_use]
    pub fn folded(&self) -> String {
        self.0.to_lowercase()
    }
}

impl PartialEq for Email {
    fn eq(&self, other: &Self) -> bool {
        self.folded() == other.folded()
    }
}

impl Eq for Email {}

impl FromStr for Email {
    type Err = EmailError;

    /// Checks only the shape, on purpose: only a message to the address can show whether it exists. Invisible
    /// characters are rejected, because people approve signups by reading the address.
    fn from_str(text: &str) -> Result<Self, EmailError> {
        let (local, domain) = text.rsplit_once('@').ok_or(EmailError)?;
        let clean = |c: char| !c.is_whitespace() && !is_invisible(c) && !matches!(c, '@' | '<' | '>' | ',' | ';' | '"');
        let labels_filled = domain.split('.').all(|label| !label.is_empty());
        if local.is_empty()
            || text.len() > Self::MAX_BYTES
            || !domain.contains('.')
            || !labels_filled
            || !local.chars().chain(domain.chars()).all(clean)
        {
            return Err(EmailError);
        }
        Ok(Self(text.to_owned()))
    }
}

text_traits!(Email: Display);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emails_are_checked_for_shape_and_compared_without_case() {
        let table = [
            ("a@example.com", true),
            ("first.last+tag@sub.example.co", true),
            ("jörg@exämple.de", true),
            ("", false),
            ("@example.com", false),
            ("a@", false),
            ("a@localhost", false),
            ("a@example..com", false),
            ("a b@example.com", false),
            ("a@b@example.com", false),
            ("a\r\nBcc: x@example.com", false),
            ("moc.elpmaxe@\u{202E}a@example.com", false),
            ("\u{202E}moc.elpmaxe@example.com", false),
            ("na\u{200B}me@example.com", false),
            ("name@exam\u{AD}ple.com", false),
            ("name\u{7F}@example.com", false),
        ];
        for (text, valid) in table {
            assert_eq!(text.parse::<Email>().is_ok(), valid, "{text:?}");
        }
        assert!(format!("{}@example.com", "a".repeat(250)).parse::<Email>().is_err());
        let same = |a: &str, b: &str| a.parse::<Email>().unwrap() == b.parse::<Email>().unwrap();
        assert!(same("A@Example.com", "a@example.COM"));
        assert!(!same("a@example.com", "b@example.com"));
    }
}
