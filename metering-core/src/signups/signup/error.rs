//! Why a signup request was refused.

use crate::signups::bot::BotCheckError;
use crate::wire::ErrorCode;

/// `Retry-After` when a bot challenge could not be checked.
const RETRY_CHECK_SECONDS: u64 = 5;

/// Why a signup request was refused.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SignupError {
    /// An account already has the email address.
    #[error("An account with this email address already exists; use its key, or another address.")]
    EmailTaken,
    /// There is no such session, or its key was already returned.
    #[error(
        "No signup has this session_token, or its key was already returned. Begin a new signup. If the account was \
         created but you never received its key, ask the operator to replace the key."
    )]
    UnknownSession,
    /// No session has the code, or it expired.
    #[error("This code is wrong or has expired; check it, or begin a new signup to get another.")]
    InvalidCode,
    /// The terms were not accepted.
    #[error("Accept the terms to continue: send tos_accepted as true.")]
    TermsNotAccepted,
    /// The bot challenge was not passed.
    #[error("The bot challenge was not passed, or its solution was used before; solve a new one.")]
    ChallengeFailed,
    /// The bot challenge could not be checked.
    #[error("The bot challenge cannot be checked right now; try again.")]
    ChallengeUnavailable(BotCheckError),
    /// The service offers no signups ([`Service::with_signup`](crate::Service::with_signup)).
    #[error("This service does not offer free signups.")]
    NotOffered,
}

impl SignupError {
    pub(crate) const fn code(&self) -> ErrorCode {
        match self {
            Self::EmailTaken => ErrorCode::EmailAlreadyRegistered,
            Self::UnknownSession | Self::NotOffered => ErrorCode::NotFound,
            Self::InvalidCode => ErrorCode::InvalidCode,
            Self::TermsNotAccepted => ErrorCode::TermsNotAccepted,
            Self::ChallengeFailed => ErrorCode::ChallengeFailed,
            Self::ChallengeUnavailable(_) => ErrorCode::ChallengeUnavailable,
        }
    }

    pub(crate) const fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::ChallengeUnavailable(_) => Some(RETRY_CHECK_SECONDS),
            _ => None,
        }
    }
}
