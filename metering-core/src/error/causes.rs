//! Converts the errors of other parts into errors for clients. A cause that they must not learn is logged here, once.

use super::Error;
use crate::access::key::KeyFault;
use crate::access::key_use::KeyRefusal;
use crate::charging::meter::MeterError;
use crate::payments::payment::{PaymentError, RecoveryError};
use crate::signups::signup::SignupError;
use crate::store::StoreError;

impl From<KeyRefusal> for Error {
    fn from(refusal: KeyRefusal) -> Self {
        match refusal {
            KeyRefusal::NotLive => Self::KeyRefused(KeyFault::NotLive),
            refusal => Self::KeyNotAllowed(refusal),
        }
    }
}

impl From<PaymentError> for Error {
    /// The client learns that the chain could not be read; the log has the reason.
    fn from(error: PaymentError) -> Self {
        if let PaymentError::Chain(cause) = &error {
            tracing::warn!(%cause, "could not check a payment");
        }
        Self::Payment(Box::new(error))
    }
}

impl From<RecoveryError> for Error {
    fn from(error: RecoveryError) -> Self {
        if let RecoveryError::Chain(cause) = &error {
            tracing::warn!(%cause, "could not check a wallet's signature");
        }
        Self::Recovery(error)
    }
}

impl From<SignupError> for Error {
    fn from(error: SignupError) -> Self {
        if let SignupError::ChallengeUnavailable(cause) = &error {
            tracing::warn!(%cause, "could not check a signup");
        }
        Self::Signup(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "the store failed");
        Self::of_store(&error)
    }
}

impl From<MeterError> for Error {
    /// The meter already logged the cause, once for the whole batch.
    fn from(error: MeterError) -> Self {
        match error {
            MeterError::Overloaded => Self::Overloaded,
            MeterError::Closed => Self::ShuttingDown,
            MeterError::NoSuchHold => Self::NoSuchRequest,
            MeterError::Store(error) => Self::of_store(&error),
        }
    }
}
