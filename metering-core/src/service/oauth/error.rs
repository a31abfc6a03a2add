use crate::error::Error;
use crate::oauth::{ClientMetadataError, GrantRefusal};
use crate::store::StoreError;
use crate::wire::OAuthErrorBody;

/// Why a request of an OAuth client failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// Its request is refused, with an error of RFC 6749, section 5.2.
    #[error("{error}: {description}")]
    Refused {
        /// The code.
        error: &'static str,
        /// The error message: what happened, and what to do. Has no secret.
        description: String,
    },
    /// The service failed, or is too busy.
    #[error(transparent)]
    Service(Error),
}

impl OAuthError {
    pub(super) fn refused(error: &'static str, description: impl ToString) -> Self {
        Self::Refused { error, description: description.to_string() }
    }

    /// A refusal of the service, with that code; other errors unchanged.
    pub(super) fn of(cause: Error, error: &'static str) -> Self {
        match cause.code().status() {
            429 | 500.. => Self::Service(cause),
            _ => Self::refused(error, cause),
        }
    }

    /// The body of the response, if the client is at fault.
    ///
    /// # Errors
    /// The service's error, if it is not.
    pub fn into_body(self) -> Result<OAuthErrorBody, Error> {
        match self {
            Self::Refused { error, description } => Ok(OAuthErrorBody { error, error_description: description }),
            Self::Service(error) => Err(error),
        }
    }
}

impl From<StoreError> for OAuthError {
    fn from(error: StoreError) -> Self {
        Self::Service(error.into())
    }
}

impl From<GrantRefusal> for OAuthError {
    fn from(refusal: GrantRefusal) -> Self {
        Self::refused(refusal.code(), refusal)
    }
}

impl From<ClientMetadataError> for OAuthError {
    fn from(problem: ClientMetadataError) -> Self {
        Self::refused(problem.code(), problem)
    }
}
