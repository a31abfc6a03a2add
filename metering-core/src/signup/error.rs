//! Why a signup did not go on.

use crate::bot::BotCheckError;
use crate::wire::ErrorCode;

/// Seconds after which a bot challenge that could not be checked is worth another try.
const RETRY_CHECK_SECONDS: u64 = 5;

/// Why a signup did not go on.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SignupError {
    /// An account has the email address.
    #[error("An account with this email address exists already; use its key, or another address.")]
    EmailTaken,
    /// There is no such session, or its key was given out.
    #[error(
        "There is no signup of this session_token, or its key was given out already. Begin a new one; where the account is there and its key was lost on the way, the operator can replace the key."
    )]
    UnknownSession,
    /// The code is nobody's, or its time is over.
    #[error("This code is wrong or has expired; check it, or begin the signup anew to get another.")]
    InvalidCode,
    /// The terms were not accepted.
    #[error("Accept the terms to go on: send tos_accepted as true.")]
    TermsNotAccepted,
    /// The bot challenge was not passed.
    #[error("The bot challenge was not passed, or its solution was used before; solve a new one.")]
    ChallengeFailed,
    /// The bot challenge could not be checked.
    #[error("The bot challenge cannot be checked at the moment; try again.")]
    ChallengeUnavailable(BotCheckError),
}

impl SignupError {
    pub(crate) const fn code(&self) -> ErrorCode {
        match self {
            Self::EmailTaken => ErrorCode::EmailAlreadyRegistered,
            Self::UnknownSession => ErrorCode::NotFound,
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
