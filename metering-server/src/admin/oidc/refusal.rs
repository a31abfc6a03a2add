//! Why a person was not signed in.

use crate::admin::person::Person;

/// Why a person was not signed in. Its text is for the log.
#[derive(Debug, thiserror::Error)]
pub(in crate::admin) enum Refusal {
    #[error("the sign-in is unknown, was used before, or was begun in another browser or more than ten minutes ago")]
    Expired,
    #[error("the provider refused: {0:?}")]
    Refused(String),
    #[error("the provider cannot be used: {0}")]
    Unavailable(String),
    #[error("the ID token is not valid: {0}")]
    Invalid(String),
    #[error("no entry of console.oidc.operators admits {0}")]
    NoRole(Person),
}

impl Refusal {
    /// The code for the sign-in page, which has a text for each.
    pub(in crate::admin) const fn code(&self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Refused(_) => "refused",
            Self::Unavailable(_) => "unavailable",
            Self::Invalid(_) => "invalid",
            Self::NoRole(_) => "no_role",
        }
    }
}
