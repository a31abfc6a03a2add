//! Which error type to use when.
//!
//! - A rule that decides yes or no returns a *value* ([`Decision`](crate::Decision),
//!   [`Created`](crate::store::Created)).
//! - A backend that fails returns [`StoreError`].
//! - A use case of [`Service`](crate::Service) returns [`Error`], which maps to a code, status and body on the wire.
//!   A cause is logged once, where it becomes an [`Error`], and never sent to a client.

mod causes;
mod child_accounts;
mod fields;
mod keys;
mod members;
mod payment_refusal;
mod response;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use child_accounts::ChildAccountError;
pub(crate) use fields::list;
pub use keys::KeyConflict;
pub use members::MemberError;
pub use payment_refusal::PaymentRefusal;

use crate::access::key::KeyFault;
use crate::access::key_use::KeyRefusal;
use crate::catalogue::path::TargetError;
use crate::chains::chain::ChainError;
use crate::charging::delivery::Repetition;
use crate::charging::max_cost::MaxCost;
use crate::charging::rate::RateStatus;
use crate::charging::refusal::Refusal;
use crate::money::credits::Credits;
use crate::payments::payment::{PaymentError, RecoveryError};
use crate::signups::signup::SignupError;
use crate::store::StoreError;
use crate::wire::PlansDocument;

/// Why a request was not served.
///
/// ```
/// use metering_core::Error;
/// use metering_core::wire::ErrorCode;
///
/// let error = Error::field("days", "must be from 1 to 90");
/// assert_eq!(error.code(), ErrorCode::ValidationFailed);
/// assert_eq!(error.code().status(), 400);
/// assert_eq!(error.to_string(), "The request is not valid: days must be from 1 to 90.");
/// let body = error.body();
/// assert_eq!(body.fields.unwrap()["days"], "must be from 1 to 90");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No live key came with the request.
    #[error("Send a live API key as 'Authorization: Bearer sk_live_...'.")]
    Unauthorized,
    /// The key sent with the request is malformed or not live. Same code and status as [`Error::Unauthorized`].
    #[error("Nothing was charged: {0}.")]
    KeyRefused(KeyFault),
    /// The key is live, and may not be used for this request.
    #[error("Nothing was charged: {}", .0.advice())]
    KeyNotAllowed(KeyRefusal),
    /// A charge was refused, for a reason that only charges have.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The account has no such key that the caller may see or change.
    #[error("There is no such key, or it is not a child of yours.")]
    NoSuchKey,
    /// The caller's key has no such session of a browser.
    #[error("There is no such session, or it is not one of your key or of its child keys.")]
    NoSuchSession,
    /// The service keeps no sessions of browsers
    /// ([`Service::with_browser_sessions`](crate::Service::with_browser_sessions)).
    #[error("This service keeps no sessions; send the API key with each request.")]
    SessionsNotOffered,
    /// The state of the keys does not allow the change.
    #[error("{0}")]
    KeyConflict(KeyConflict),
    /// A request about members of an account, or a sign-in of one, was refused.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// A request about child accounts was refused.
    #[error(transparent)]
    ChildAccount(#[from] ChildAccountError),
    /// The path belongs to no metered route.
    #[error("No metered route has this path; nothing was charged.{}", route_hint(.nearest.as_deref(), .all.as_deref()))]
    UnknownRoute {
        /// The template that the caller probably meant.
        nearest: Option<Arc<str>>,
        /// Where all routes are listed.
        all: Option<Arc<str>>,
    },
    /// The route sells models, but not the requested one.
    #[error("The model `{0}` does not exist here; nothing was charged.")]
    UnknownModel(String),
    /// The route does not have this method; it has these.
    #[error("This path accepts {} only.", .0.join(", "))]
    MethodNotAllowed(Vec<String>),
    /// The path could be read in more than one way.
    #[error("The path is not valid: {0}.")]
    InvalidPath(TargetError),
    /// Parameters are not valid for the metered route: the problem with each, by name.
    #[error("The parameters are not valid for this route; nothing was charged: {}.", list(.0))]
    InvalidParameter(BTreeMap<String, String>),
    /// Fields of the request are not valid: the problem with each, by name.
    #[error("The request is not valid: {}.", list(.0))]
    ValidationFailed(BTreeMap<String, String>),
    /// The key has reached its limit of open streams.
    #[error("This key already has {open} open streams, its maximum; close one.")]
    TooManyStreams {
        /// How many streams are open.
        open: usize,
    },
    /// A WebSocket handshake arrived at a route that accepts none.
    #[error(
        "This route does not take WebSocket connections; nothing was charged. Send an ordinary request, or see the list \
         of routes for one that does."
    )]
    WebSocketNotSupported,
    /// The route takes WebSocket connections only, and the request is not a handshake.
    #[error(
        "This route takes WebSocket connections only; nothing was charged. Open one with GET over HTTP/1.1 (RFC 6455); \
         a proxy on the way has to pass Upgrade and Connection on."
    )]
    UpgradeRequired,
    /// The balance is not above zero, or does not cover the hold.
    #[error("{}", .0.advice())]
    InsufficientCredits(Box<PaymentRequired>),
    /// A quote, a claim or a top-up was refused.
    #[error(transparent)]
    Payment(Box<PaymentError>),
    /// The request costs more than its client allows.
    #[error("{}", .max_cost.exceeded_by(*.price, *.is_maximum))]
    MaxCostExceeded {
        /// The request's price, or the most that it may cost.
        price: Credits,
        /// The limit that came with it.
        max_cost: MaxCost,
        /// Whether the price is the most that it may cost.
        is_maximum: bool,
    },
    /// The account has no request with this id, or it was settled too long ago.
    #[error("There is no request with this id, or it is no longer kept.")]
    NoSuchRequest,
    /// The account has no receipt with this number.
    #[error("This account has no receipt with this number.")]
    NoSuchReceipt,
    /// The account has no such webhook.
    #[error("This account has no such webhook.")]
    NoSuchWebhook,
    /// The webhook has no such delivery.
    #[error("This webhook has no such delivery. Deliveries are kept for 30 days.")]
    NoSuchDelivery,
    /// The account has reached its limit of webhooks.
    #[error("The account has reached its limit of webhooks. Delete one first.")]
    TooManyWebhooks,
    /// The webhook is disabled or gone.
    #[error("This webhook is not active, so nothing is sent to it. Switch it on first.")]
    WebhookInactive,
    /// The service sends no webhooks to customers ([`Service::with_webhooks`](crate::Service::with_webhooks)).
    #[error("This service does not offer webhooks.")]
    WebhooksNotOffered,
    /// The request has no key, and the service accepts payments instead.
    #[error(
        "This request costs {price} credits. Pay one of the offers with it, or send an API key; nothing was charged."
    )]
    PaymentRequired {
        /// The request's price, or the most that it may cost.
        price: Credits,
    },
    /// The request is for credits alone, and came without a payment.
    #[error("This request buys credits. Send it with a payment that takes one of the offers; nothing was charged.")]
    CreditsForSale,
    /// The service accepts no payments with requests
    /// ([`Service::with_request_payments`](crate::Service::with_request_payments)).
    #[error("This service does not accept payments with requests; nothing was taken. Buy a plan instead.")]
    OffersNotMade,
    /// The request has no key, and its wallet was not signed in.
    #[error("{refusal} {}", sign_in_advice(.price))]
    SignIn {
        /// Why.
        refusal: Arc<dyn std::error::Error + Send + Sync>,
        /// The request's price, or the most that it may cost; `None` if it cannot be paid for.
        price: Option<Credits>,
    },
    /// A payment that came with a request was not credited, or not yet.
    #[error("{0}")]
    Offer(Arc<dyn PaymentRefusal>),
    /// A key was not rotated.
    #[error(transparent)]
    Recovery(RecoveryError),
    /// A signup step was refused.
    #[error(transparent)]
    Signup(SignupError),
    /// The store failed.
    #[error("The service cannot record requests at the moment. Nothing was charged; try again.")]
    StorageUnavailable,
    /// The request's idempotency key is known, and the request is not forwarded again now.
    #[error("{}", .0.advice())]
    Repeated(Repetition),
    /// The request came without a key, its payment was sent with it before, and it is not forwarded again now.
    #[error("{}", repeated_payment(.0))]
    PaymentRepeated(Repetition),
    /// The store failed during a commit, so the commit may or may not have happened.
    #[error(
        "A write to disk failed, so it is unknown whether this request took effect and was charged. Retry it with the \
         same idempotency key (Idempotency-Key, or request_id): it is not charged twice. Without a key, check your \
         usage before you retry."
    )]
    OutcomeUnknown,
    /// Too many requests wait to be charged.
    #[error("The service is overloaded. Nothing was charged; try again.")]
    Overloaded,
    /// The service is shutting down.
    #[error("The service is restarting. Nothing was charged; try again.")]
    ShuttingDown,
    /// The response to a charged request could not be delivered, and the refund could not be recorded.
    #[error("The request failed, and its charge could not be refunded. Contact the operator.")]
    NotRefunded,
    /// A state that should be impossible.
    #[error("The service failed; the server's log has the cause.")]
    Internal,
}

/// A balance that is used up, and where to buy credits.
#[derive(Debug, Clone)]
pub struct PaymentRequired {
    /// Credits left: zero or below, or less than the hold needs.
    pub balance: Credits,
    /// The request's price.
    pub required: Credits,
    /// The account's use of its rate limits.
    pub rate: RateStatus,
    /// URL of the list of plans.
    pub plans_url: Option<String>,
    /// URL to register a payment at.
    pub topup_url: Option<String>,
    /// The plans on sale.
    pub plans: Arc<PlansDocument>,
}

fn sign_in_advice(price: &Option<Credits>) -> String {
    match price {
        Some(price) => format!(
            "This request costs {price} credits; nothing was charged. Pay one of the offers with it, sign in again, or send \
             an API key."
        ),
        None => "Sign in again, or send a live API key as 'Authorization: Bearer sk_live_...'.".to_owned(),
    }
}

fn repeated_payment(repetition: &Repetition) -> &'static str {
    match repetition {
        Repetition::OtherRequest => {
            "This payment was sent with another request; nothing was charged or taken now. Sign a new payment for each \
             request."
        }
        Repetition::InProgress { .. } => {
            "The request with this payment may still be in progress; nothing was charged or taken now. Retry after the \
             time given."
        }
        Repetition::UsedUp => {
            "The request with this payment was already charged, and was served or has no retries left; nothing was \
             charged or taken now. Responses are not stored, so make another request: sign in with the wallet if it has \
             credits left, or pay again."
        }
    }
}

fn route_hint(nearest: Option<&str>, all: Option<&str>) -> String {
    let nearest = nearest.map(|nearest| format!(" Did you mean {nearest}?")).unwrap_or_default();
    let all = all.map(|all| format!(" For all routes, see {all}.")).unwrap_or_default();
    nearest + &all
}

impl PaymentRequired {
    /// The missing credits: the required amount minus the available one, at least zero.
    #[must_use]
    pub fn missing(&self) -> Credits {
        let missing = self.required.checked_sub(self.balance).unwrap_or(Credits::MAX);
        if missing.is_negative() { Credits::ZERO } else { missing }
    }

    /// The next step, which depends on whether any plan is on sale.
    fn advice(&self) -> &'static str {
        match (self.balance.is_positive(), self.plans.plans.is_empty() && self.plans.cards.is_empty()) {
            (false, true) => {
                "The balance is used up; nothing was charged. No plan is on sale here: ask the operator for credits."
            }
            (false, false) => {
                "The balance is used up; nothing was charged. Buy a plan, register the payment, and try again."
            }
            (true, true) => {
                "The balance does not cover what this request may cost; nothing was charged. No plan is on sale here: ask \
                 the operator for credits."
            }
            (true, false) => {
                "The balance does not cover what this request may cost; nothing was charged. Buy a plan, register the \
                 payment, and try again."
            }
        }
    }
}

impl Error {
    /// A validation error for one field.
    #[must_use]
    pub fn field(name: &str, problem: impl ToString) -> Self {
        Self::ValidationFailed(BTreeMap::from([(name.to_owned(), problem.to_string())]))
    }

    /// For background tasks, whose caller logs the cause when it changes: they try again every few seconds.
    pub(crate) fn of_chain(cause: ChainError) -> Self {
        Self::Payment(Box::new(PaymentError::Chain(cause)))
    }

    /// Why a chain could not be read, in words for operators, if it caused this error.
    #[must_use]
    pub fn chain_problem(&self) -> Option<&ChainError> {
        match self {
            Self::Payment(error) => match &**error {
                PaymentError::Chain(cause) => Some(cause),
                _ => None,
            },
            _ => None,
        }
    }

    fn of_store(error: &StoreError) -> Self {
        if error.outcome_is_unknown() { Self::OutcomeUnknown } else { Self::StorageUnavailable }
    }
}
