//! Why a signup request was refused.

use crate::signups::bot::BotCheckError;
use crate::wire::ErrorCode;

/// `Retry-After` when a bot challenge could not be checked, or mail could not be queued.
const RETRY_SECONDS: u64 = 5;

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
    /// The link was used, replaced by a newer one, or has expired.
    #[error("This link was already used, was replaced by a newer one, or has expired; ask for a new one.")]
    LinkNotLive,
    /// Another account has verified the address.
    #[error(
        "Another account has verified this email address in the meantime, so this account cannot. If that account is \
         yours, use its key; otherwise sign up with another address."
    )]
    EmailVerifiedElsewhere,
    /// The account has no email address.
    #[error("This account has no email address.")]
    NoEmail,
    /// Too much mail is waiting to be sent.
    #[error("Too much mail is waiting to be sent; try again shortly.")]
    MailBusy,
    /// The service sends no mail ([`SignupSettings::mailer`](crate::service::SignupSettings)).
    #[error("This service does not send mail.")]
    NoMail,
    /// The service offers no signups ([`Service::with_signup`](crate::Service::with_signup)).
    #[error("This service does not offer free signups.")]
    NotOffered,
}

impl SignupError {
    pub(crate) const fn code(&self) -> ErrorCode {
        match self {
            Self::EmailTaken | Self::EmailVerifiedElsewhere => ErrorCode::EmailAlreadyRegistered,
            Self::UnknownSession | Self::NotOffered | Self::NoMail => ErrorCode::NotFound,
            Self::LinkNotLive => ErrorCode::LinkExpired,
            Self::NoEmail => ErrorCode::NoEmailAddress,
            Self::MailBusy => ErrorCode::Overloaded,
            Self::InvalidCode => ErrorCode::InvalidCode,
            Self::TermsNotAccepted => ErrorCode::TermsNotAccepted,
            Self::ChallengeFailed => ErrorCode::ChallengeFailed,
            Self::ChallengeUnavailable(_) => ErrorCode::ChallengeUnavailable,
        }
    }

    pub(crate) const fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::ChallengeUnavailable(_) | Self::MailBusy => Some(RETRY_SECONDS),
            _ => None,
        }
    }
}
