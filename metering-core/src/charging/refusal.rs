//! Why a charge is refused. All texts and codes of a refusal are declared here, for clients and operators: its error
//! code, its message, when to retry, and its names in traces and metrics.

use crate::access::key::KeyFault;
use crate::access::key_use::KeyRefusal;
use crate::charging::delivery::Repetition;
use crate::charging::key_meter::{ExhaustedBudget, KeyLimit};
use crate::charging::max_cost::MaxCost;
use crate::charging::rate::{LimitWindow, RateStatus, TokenStatus};
use crate::money::credits::Credits;
use crate::named_enum::named_enum;
use crate::wire::ErrorCode;

/// Seconds to wait for a request in flight to end. A guess.
const RETRY_SOON_SECONDS: u64 = 1;

/// Why a charge was refused.
///
/// ```
/// use metering_core::Refusal;
/// use metering_core::wire::ErrorCode;
///
/// assert_eq!(Refusal::TooManyInFlight.code(), ErrorCode::TooManyRequestsInFlight);
/// assert_eq!(Refusal::TooManyInFlight.retry_after_seconds(), Some(1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The key is unknown, or it or a parent key is not live; callers cannot distinguish these.
    #[error("Nothing was charged: {}.", KeyFault::NotLive)]
    UnknownKey,
    /// The key may not be used for this request.
    #[error("Nothing was charged: {}", .0.advice())]
    Key(KeyRefusal),
    /// The key, or a parent key, has reached its limit of requests in flight.
    #[error("This key has reached its limit of requests in flight; nothing was charged. Wait for one to end.")]
    TooManyInFlight,
    /// The budget of the key, or of a parent key, does not cover the price.
    #[error("{}", budget_advice(.exhausted))]
    KeyBudget {
        /// The budget, and the amount spent of it.
        exhausted: ExhaustedBudget,
        /// The use of the rate limits.
        rate: RateStatus,
    },
    /// A rate limit is reached.
    #[error("{}", rate_advice(*.window, .rate))]
    RateLimited {
        /// Which.
        window: LimitWindow,
        /// The use of the rate limits that refused it, the account's or a key's.
        rate: RateStatus,
    },
    /// The request's idempotency key is known, and the request may not be forwarded again now.
    #[error("{}", .0.advice())]
    Repeated(Repetition),
    /// The balance is not above zero, or does not cover the hold.
    #[error("The balance of {balance} credits does not cover this request; nothing was charged.")]
    InsufficientCredits {
        /// The balance.
        balance: Credits,
        /// The request's price.
        required: Credits,
        /// The account's use of its rate limits.
        rate: RateStatus,
    },
    /// The request's volume tier costs more than its client allows.
    #[error("{}", .max_cost.exceeded_by(*.price, false))]
    MaxCostExceeded {
        /// The request's price.
        price: Credits,
        /// The most that it may cost.
        max_cost: MaxCost,
    },
}

named_enum! {
    /// Kinds of refusals, by their names in traces.
    #[non_exhaustive]
    pub enum RefusalKind {
        /// [`Refusal::UnknownKey`].
        UnknownKey = "unknown_key",
        /// [`Refusal::Key`].
        Key = "key_not_allowed",
        /// [`Refusal::RateLimited`].
        RateLimited = "rate_limited",
        /// [`Refusal::TooManyInFlight`].
        TooManyInFlight = "too_many_in_flight",
        /// [`Refusal::Repeated`].
        Repeated = "idempotency_key_in_use",
        /// [`Refusal::InsufficientCredits`].
        InsufficientCredits = "insufficient_credits",
        /// [`Refusal::KeyBudget`].
        KeyBudget = "key_budget",
        /// [`Refusal::MaxCostExceeded`].
        MaxCostExceeded = "max_cost_exceeded",
    }
}

impl RefusalKind {
    /// The error codes that clients get.
    #[must_use]
    pub const fn codes(self) -> &'static [ErrorCode] {
        match self {
            Self::UnknownKey => &[ErrorCode::Unauthorized],
            Self::Key => &[ErrorCode::KeyExpired, ErrorCode::KeyScope, ErrorCode::KeyNetwork],
            Self::RateLimited => &[ErrorCode::RateLimited],
            Self::TooManyInFlight => &[ErrorCode::TooManyRequestsInFlight],
            Self::Repeated => {
                &[ErrorCode::RequestInProgress, ErrorCode::IdempotencyKeyUsed, ErrorCode::IdempotencyKeyReused]
            }
            Self::InsufficientCredits => &[ErrorCode::InsufficientCredits],
            Self::KeyBudget => &[ErrorCode::KeyBudgetExhausted],
            Self::MaxCostExceeded => &[ErrorCode::MaxCostExceeded],
        }
    }

    /// Its name in metrics, which is its code if it has one only; `None` if they do not count it.
    #[must_use]
    pub const fn in_metrics(self) -> Option<&'static str> {
        match (self, self.codes()) {
            (Self::Repeated, _) => None,
            (_, [code]) => Some(code.as_str()),
            _ => Some(self.as_str()),
        }
    }
}

impl Refusal {
    /// The refusal by a key's limit. `rate` is the rate report of an accepted charge.
    pub(crate) const fn of_limit(limit: KeyLimit, rate: RateStatus) -> Self {
        match limit {
            KeyLimit::Rate(window, rate) => Self::RateLimited { window, rate },
            KeyLimit::Budget(exhausted) => Self::KeyBudget { exhausted, rate },
        }
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> RefusalKind {
        match self {
            Self::UnknownKey => RefusalKind::UnknownKey,
            Self::Key(_) => RefusalKind::Key,
            Self::TooManyInFlight => RefusalKind::TooManyInFlight,
            Self::KeyBudget { .. } => RefusalKind::KeyBudget,
            Self::RateLimited { .. } => RefusalKind::RateLimited,
            Self::Repeated(_) => RefusalKind::Repeated,
            Self::InsufficientCredits { .. } => RefusalKind::InsufficientCredits,
            Self::MaxCostExceeded { .. } => RefusalKind::MaxCostExceeded,
        }
    }

    /// The error code that clients get.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Key(refusal) => refusal.code(),
            Self::Repeated(repetition) => repetition.code(),
            _ => self.kind().codes()[0],
        }
    }

    /// Seconds until a retry may succeed; `None` if waiting does not help.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::TooManyInFlight => Some(RETRY_SOON_SECONDS),
            Self::RateLimited { window: LimitWindow::Tokens, rate } if rate.tokens.is_above_limit() => None,
            Self::RateLimited { window, rate } => Some(rate.reset_seconds(*window)),
            Self::KeyBudget { exhausted, .. } => exhausted.retry_after_seconds(),
            Self::Repeated(Repetition::InProgress { retry_after_seconds }) => Some(*retry_after_seconds),
            _ => None,
        }
    }

    /// The use of the rate limits, if clients see it with this refusal.
    #[must_use]
    pub const fn rate(&self) -> Option<&RateStatus> {
        match self {
            Self::KeyBudget { rate, .. } | Self::RateLimited { rate, .. } | Self::InsufficientCredits { rate, .. } => {
                Some(rate)
            }
            _ => None,
        }
    }

    /// The request's price, if that is why it was refused.
    #[must_use]
    pub const fn required(&self) -> Option<Credits> {
        match self {
            Self::KeyBudget { exhausted, .. } => Some(exhausted.required),
            Self::InsufficientCredits { required, .. } => Some(*required),
            Self::MaxCostExceeded { price, .. } => Some(*price),
            _ => None,
        }
    }
}

fn rate_advice(window: LimitWindow, rate: &RateStatus) -> String {
    let TokenStatus { limit, requested, .. } = rate.tokens;
    match window {
        LimitWindow::Minute | LimitWindow::Day => {
            format!("The rate limit per {} is reached; nothing was charged. Wait and try again.", window.as_str())
        }
        LimitWindow::Tokens if rate.tokens.is_above_limit() => format!(
            "This request may use {requested} tokens, more than the limit of {limit} tokens per minute; nothing was \
             charged. Send a shorter request, or allow fewer tokens of output."
        ),
        LimitWindow::Tokens => {
            let left = rate.tokens.remaining().unwrap_or(0);
            format!(
                "The limit of {limit} tokens per minute is reached: {left} are left, and this request may use \
                 {requested}; nothing was charged. Wait and try again."
            )
        }
    }
}

fn budget_advice(exhausted: &ExhaustedBudget) -> String {
    let left = exhausted.remaining();
    let next = match exhausted.resets_at() {
        Some(at) => format!("It resets at {at}."),
        None => "It does not reset: ask whoever gave you the key to raise its limit.".to_owned(),
    };
    format!("The budget of this key has {left} credits left, less than the price; nothing was charged. {next}")
}
