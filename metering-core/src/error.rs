//! Which error type to use when.
//!
//! - A rule that answers yes or no returns a *value* ([`Decision`](crate::Decision), [`Created`](crate::Created)).
//! - A backend in trouble returns [`StoreError`].
//! - A use case of [`Service`](crate::Service) returns [`Error`], which knows its code, status and body on the wire.
//!   Causes are logged where they become an [`Error`], once, and never reach a client.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::charge::{LimitWindow, RateStatus};
use crate::credentials::KeyFault;
use crate::credits::Credits;
use crate::delivery::Repetition;
use crate::meter::MeterError;
use crate::path::TargetError;
use crate::payment::{PaymentError, RecoveryError};
use crate::signup::SignupError;
use crate::store::StoreError;
use crate::wire::{ErrorBody, ErrorCode, PlansDocument, Required, rate_headers};

/// Seconds after which an overloaded or unavailable service is worth another try.
const RETRY_SOON_SECONDS: u64 = 1;

/// Why a request was not served.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// No live key came with the request.
    #[error("Send a live API key as 'Authorization: Bearer sk_live_...'.")]
    Unauthorized,
    /// A key came with the request, and is none or not live. The same to programs as [`Error::Unauthorized`].
    #[error("Nothing was charged: {0}.")]
    KeyRefused(KeyFault),
    /// No metered route has that path.
    #[error("No metered route has this path; nothing was charged. {}", where_routes_are(.nearest.as_deref()))]
    UnknownRoute {
        /// The template that was probably meant.
        nearest: Option<Arc<str>>,
    },
    /// The route has other methods only.
    #[error("This path answers to {} only.", .0.join(", "))]
    MethodNotAllowed(Vec<String>),
    /// The path could be read in more than one way.
    #[error("The path is not acceptable: {0}.")]
    InvalidPath(TargetError),
    /// Parameters of a metered route do not fit: what is wrong, by name.
    #[error("Parameters do not fit the route: {}.", list(.0))]
    InvalidParameter(BTreeMap<String, String>),
    /// Fields of the request do not fit: what is wrong, by name.
    #[error("The request is not valid: {}.", list(.0))]
    ValidationFailed(BTreeMap<String, String>),
    /// A cap is reached.
    #[error("The account's cap of requests per {} is reached; wait and try again.", .window.as_str())]
    RateLimited {
        /// Which cap.
        window: LimitWindow,
        /// Where the account stands.
        rate: RateStatus,
    },
    /// The balance is not above zero.
    #[error("{}", .0.advice())]
    InsufficientCredits(Box<Shortage>),
    /// A quote, a claim or a top-up was refused.
    #[error(transparent)]
    Payment(Box<PaymentError>),
    /// A key was not rotated.
    #[error(transparent)]
    Recovery(RecoveryError),
    /// A signup did not go on.
    #[error(transparent)]
    Signup(SignupError),
    /// The store failed.
    #[error("The service cannot record requests at the moment; nothing was charged, try again.")]
    StorageUnavailable,
    /// The request's idempotency key is known, and it is not forwarded again now.
    #[error("{}", repeated(.0))]
    Repeated(Repetition),
    /// The store failed at a commit: it may or may not have happened.
    #[error(
        "A write to disk failed, so it is unknown whether this request took effect and was charged. Send it again with \
         the same idempotency key (Idempotency-Key, or request_id): it is not charged twice. Without one, check the \
         usage first."
    )]
    OutcomeUnknown,
    /// Too many requests wait to be charged.
    #[error("The service is overloaded; nothing was charged, try again.")]
    Overloaded,
    /// The service is shutting down.
    #[error("The service is restarting; nothing was charged, try again.")]
    ShuttingDown,
    /// What was charged for could not be delivered, and paying it back could not be recorded.
    #[error("The request failed and could not be refunded; tell the operator.")]
    NotRefunded,
    /// Something that should be impossible.
    #[error("The service failed; the operator's log says why.")]
    Internal,
}

/// What an account lacks, and where to get it.
#[derive(Debug, Clone)]
pub struct Shortage {
    /// Credits left, zero or below.
    pub balance: Credits,
    /// The request's price.
    pub required: Credits,
    /// Where the account stands within its caps.
    pub rate: RateStatus,
    /// Where plans are listed.
    pub plans_url: String,
    /// Where a payment is registered.
    pub topup_url: String,
    /// What is for sale.
    pub plans: Arc<PlansDocument>,
}

fn repeated(repetition: &Repetition) -> &'static str {
    match repetition {
        Repetition::OtherRequest => {
            "This Idempotency-Key was used for another request; nothing was charged now. Use a new key for each request."
        }
        Repetition::InProgress { .. } => {
            "The request with this Idempotency-Key may still be under way; nothing was charged now. Retry after the time \
             given."
        }
        Repetition::UsedUp => {
            "The request with this Idempotency-Key was charged once and served; nothing was charged now. Responses are not \
             kept: use a new key to buy another."
        }
    }
}

fn where_routes_are(nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!("Did you mean {nearest}? `metering routes` lists all routes."),
        None => "`metering routes` and /endpoints.json list all routes.".to_owned(),
    }
}

impl Shortage {
    /// What to do about it, which depends on whether there is anything to buy.
    fn advice(&self) -> &'static str {
        if self.plans.plans.is_empty() {
            "The balance is used up, and no plan is on sale here; nothing was charged. Ask the operator for credits."
        } else {
            "The balance is used up; buy a plan and register the payment, then try again."
        }
    }
}

/// What is wrong, by name, in one text.
pub(crate) fn list(fields: &BTreeMap<String, String>) -> String {
    let items: Vec<_> = fields.iter().map(|(name, problem)| format!("{name} {problem}")).collect();
    items.join("; ")
}

impl Error {
    /// A validation error of one field.
    #[must_use]
    pub fn field(name: &str, problem: impl ToString) -> Self {
        Self::ValidationFailed(BTreeMap::from([(name.to_owned(), problem.to_string())]))
    }

    fn of_store(error: &StoreError) -> Self {
        if error.outcome_is_unknown() { Self::OutcomeUnknown } else { Self::StorageUnavailable }
    }

    /// Its stable code, which knows the HTTP status.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unauthorized | Self::KeyRefused(_) => ErrorCode::Unauthorized,
            Self::UnknownRoute { .. } => ErrorCode::UnknownRoute,
            Self::MethodNotAllowed(_) => ErrorCode::MethodNotAllowed,
            Self::InvalidPath(_) => ErrorCode::InvalidPath,
            Self::InvalidParameter(_) => ErrorCode::InvalidParameter,
            Self::ValidationFailed(_) => ErrorCode::ValidationFailed,
            Self::RateLimited { .. } => ErrorCode::RateLimited,
            Self::InsufficientCredits(_) => ErrorCode::InsufficientCredits,
            Self::Payment(error) => error.code(),
            Self::Recovery(error) => error.code(),
            Self::Signup(error) => error.code(),
            Self::StorageUnavailable => ErrorCode::StorageUnavailable,
            Self::OutcomeUnknown => ErrorCode::OutcomeUnknown,
            Self::Repeated(Repetition::OtherRequest) => ErrorCode::IdempotencyKeyReused,
            Self::Repeated(Repetition::InProgress { .. }) => ErrorCode::RequestInProgress,
            Self::Repeated(Repetition::UsedUp) => ErrorCode::IdempotencyKeyUsed,
            Self::Overloaded => ErrorCode::Overloaded,
            Self::ShuttingDown => ErrorCode::ShuttingDown,
            Self::NotRefunded | Self::Internal => ErrorCode::InternalError,
        }
    }

    /// After how many seconds trying again may help, for `Retry-After`.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::RateLimited { window, rate } => Some(rate.reset_seconds(*window)),
            Self::Repeated(Repetition::InProgress { retry_after_seconds }) => Some(*retry_after_seconds),
            Self::Payment(error) => error.retry_after_seconds(),
            Self::Recovery(error) => error.retry_after_seconds(),
            Self::Signup(error) => error.retry_after_seconds(),
            Self::StorageUnavailable | Self::OutcomeUnknown | Self::Overloaded | Self::ShuttingDown => {
                Some(RETRY_SOON_SECONDS)
            }
            _ => None,
        }
    }

    /// Its body on the wire.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let mut body = ErrorBody::new(self.code(), self.to_string());
        body.retry_after_sec = self.retry_after_seconds();
        match self {
            Self::InvalidParameter(fields) | Self::ValidationFailed(fields) => body.fields = Some(fields.clone()),
            Self::RateLimited { window, rate } => {
                body.limit_window = Some(window.as_str());
                body.rate_limits = Some(rate.limits);
            }
            Self::InsufficientCredits(shortage) => {
                body.credit_balance = Some(shortage.balance);
                body.required = Some(Required::Credits(shortage.required));
                body.plans_url = Some(shortage.plans_url.clone());
                body.topup_url = Some(shortage.topup_url.clone());
                body.offer = Some(Arc::clone(&shortage.plans));
            }
            Self::UnknownRoute { nearest } => body.nearest_route = nearest.as_deref().map(str::to_owned),
            Self::Payment(error) => error.add_context(&mut body),
            _ => {}
        }
        body
    }

    /// Its headers on the wire, beside `Content-Type`.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = match self {
            Self::Unauthorized | Self::KeyRefused(_) => vec![("www-authenticate", "Bearer".to_owned())],
            Self::MethodNotAllowed(methods) => vec![("allow", methods.join(", "))],
            Self::RateLimited { rate, .. } => rate_headers(rate),
            Self::InsufficientCredits(shortage) => rate_headers(&shortage.rate),
            _ => Vec::new(),
        };
        if let Some(seconds) = self.retry_after_seconds() {
            headers.push(("retry-after", seconds.to_string()));
        }
        headers
    }
}

impl From<PaymentError> for Error {
    /// The client learns that the chain could not be read, the operator why.
    fn from(error: PaymentError) -> Self {
        if let PaymentError::Chain(cause) = &error {
            tracing::warn!(%cause, "a payment could not be looked at");
        }
        Self::Payment(Box::new(error))
    }
}

impl From<RecoveryError> for Error {
    fn from(error: RecoveryError) -> Self {
        if let RecoveryError::Chain(cause) = &error {
            tracing::warn!(%cause, "a wallet's signature could not be looked at");
        }
        Self::Recovery(error)
    }
}

impl From<SignupError> for Error {
    fn from(error: SignupError) -> Self {
        if let SignupError::ChallengeUnavailable(cause) = &error {
            tracing::warn!(%cause, "a signup could not be checked");
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
    /// The meter has logged the cause already, once for the whole batch.
    fn from(error: MeterError) -> Self {
        match error {
            MeterError::Overloaded => Self::Overloaded,
            MeterError::Closed => Self::ShuttingDown,
            MeterError::Store(error) => Self::of_store(&error),
        }
    }
}
