//! An operator: a name, a role, and a token that is issued once.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::named_enum::named_enum;
use crate::secret::{Secret, SecretHash, token};
use crate::text_traits::text_traits;

/// The secret that an operator signs in with: `opr_` and 43 random base-62 digits.
pub type OperatorToken = Secret<OperatorTokenKind>;

/// The SHA3-256 of an operator's token, by which stores identify the operator.
pub type OperatorTokenHash = SecretHash<OperatorTokenKind>;

/// The kind of secret that an [`OperatorToken`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperatorTokenKind {}

/// The text is not an operator's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an operator's token; expected opr_ followed by 43 letters and digits")]
pub struct MalformedOperatorToken;

token!(OperatorTokenKind: OperatorToken, OperatorTokenHash, "opr_", MalformedOperatorToken);

/// The name of an operator, as the audit log shows it: 1 to 64 of `A-Z a-z 0-9 . _ @ -`.
///
/// ```
/// use metering_core::operators::OperatorName;
///
/// let name: OperatorName = "jo@example.com".parse()?;
/// assert_eq!(name.as_str(), "jo@example.com");
/// assert!("jo smith".parse::<OperatorName>().is_err());
/// # Ok::<(), metering_core::operators::OperatorNameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct OperatorName(String);

/// The text is not the name of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 64 letters, digits, dots, hyphens, underscores or at signs")]
pub struct OperatorNameError;

impl OperatorName {
    const MAX_BYTES: usize = 64;

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for OperatorName {
    type Err = OperatorNameError;

    fn from_str(text: &str) -> Result<Self, OperatorNameError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'@' | b'-');
        if text.is_empty() || text.len() > Self::MAX_BYTES || !text.bytes().all(allowed) {
            return Err(OperatorNameError);
        }
        Ok(Self(text.to_owned()))
    }
}

text_traits!(OperatorName: Display);

named_enum! {
    /// The rights of an operator.
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Role {
        /// Read everything; change nothing.
        Viewer = "viewer",
        /// Read everything, and take every action.
        Manager = "manager",
    }
    parsed as MalformedRole
}

/// The text is not a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be viewer or manager")]
pub struct MalformedRole;

/// An operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// The name. Names are never reused, or the audit log would become ambiguous.
    pub name: OperatorName,
    /// The operator's rights.
    pub role: Role,
    /// The hash of the token.
    pub token: OperatorTokenHash,
    /// When the operator was created.
    pub created_at: Timestamp,
    /// Since when the token is refused, if it is.
    pub revoked_at: Option<Timestamp>,
}

/// An operator to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOperator {
    /// The name.
    pub name: OperatorName,
    /// The operator's rights.
    pub role: Role,
    /// The hash of the token.
    pub token: OperatorTokenHash,
    /// When the operator is created.
    pub created_at: Timestamp,
}

impl From<NewOperator> for Operator {
    fn from(new: NewOperator) -> Self {
        let NewOperator { name, role, token, created_at } = new;
        Self { name, role, token, created_at, revoked_at: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandomness;

    #[test]
    fn names_are_short_and_plain() {
        let longest = "a".repeat(64);
        let too_long = "a".repeat(65);
        let table = [
            ("jo", true),
            ("Jo.Smith-2_x@example.com", true),
            (longest.as_str(), true),
            (too_long.as_str(), false),
            ("", false),
            ("jo smith", false),
            ("jö", false),
            ("a\nb", false),
        ];
        for (text, valid) in table {
            assert_eq!(text.parse::<OperatorName>().is_ok(), valid, "{text:?}");
        }
    }

    #[test]
    fn tokens_and_roles_are_read_as_they_are_written() {
        let token = OperatorToken::generate(&SystemRandomness);
        assert_eq!(OperatorToken::parse(token.expose()).unwrap().hash(), token.hash());
        assert_eq!(OperatorToken::parse("sk_live_1").err(), Some(MalformedOperatorToken));
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert_eq!("root".parse::<Role>(), Err(MalformedRole));
    }
}
