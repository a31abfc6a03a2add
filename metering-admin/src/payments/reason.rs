//! The reason for an assignment, which becomes part of a ledger entry.

use std::fmt;
use std::str::FromStr;

use metering_core::access::is_invisible;

/// Why a payment is assigned: one line of 1 to 500 characters, at least one of them visible. The account's owner can
/// read it in the ledger.
///
/// ```
/// use metering_admin::payments::Reason;
///
/// let reason: Reason = " Ticket 311 ".parse()?;
/// assert_eq!(reason.as_str(), "Ticket 311");
/// assert!("two\nlines".parse::<Reason>().is_err());
/// # Ok::<(), metering_admin::payments::ReasonError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason(String);

/// A reason that is empty, too long or more than one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one line of 1 to {} characters", Reason::CHARS_MAX)]
pub struct ReasonError;

impl Reason {
    /// The longest reason, in characters.
    pub const CHARS_MAX: usize = 500;

    /// The reason, without white space around it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Reason {
    type Err = ReasonError;

    fn from_str(text: &str) -> Result<Self, ReasonError> {
        let text = text.trim();
        let is_blank = text.chars().all(|c| c.is_whitespace() || is_invisible(c));
        if is_blank || text.chars().count() > Self::CHARS_MAX || text.chars().any(char::is_control) {
            return Err(ReasonError);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_one_non_empty_line() {
        let (longest, too_long) = ("ä".repeat(500), "a".repeat(501));
        for good in ["a", longest.as_str(), " padded ", "👩\u{200D}💻 asked"] {
            assert_eq!(good.parse::<Reason>().unwrap().as_str(), good.trim());
        }
        for bad in ["", "  ", "\u{200B}", " \u{3164}\u{FEFF} ", "two\nlines", "bell\u{7}", too_long.as_str()] {
            assert_eq!(bad.parse::<Reason>(), Err(ReasonError), "{bad:?}");
        }
        assert_eq!(ReasonError.to_string(), "must be one line of 1 to 500 characters");
    }
}
