//! The response to an error: its code, its body and its headers.

use std::sync::Arc;

use super::Error;
use crate::access::budget::BudgetReset;
use crate::access::key_use::KeyRefusal;
use crate::charging::delivery::Repetition;
use crate::charging::rate::{LimitWindow, RateStatus};
use crate::charging::refusal::Refusal;
use crate::wire::{ErrorBody, ErrorCode, Required, rate_headers};

/// Seconds to wait before retrying a request to an overloaded or unavailable service.
const RETRY_SOON_SECONDS: u64 = 1;

/// Seconds to wait before opening another stream. A guess: when one will end is unknown.
const STREAM_RETRY_SECONDS: u64 = 5;

impl Error {
    /// The stable error code, which determines the HTTP status.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unauthorized | Self::KeyRefused(_) => ErrorCode::Unauthorized,
            Self::KeyNotAllowed(refusal) => refusal.code(),
            Self::Refused(refusal) => refusal.code(),
            Self::MaxCostExceeded { .. } => ErrorCode::MaxCostExceeded,
            Self::NoSuchKey | Self::NoSuchSession | Self::SessionsNotOffered => ErrorCode::NotFound,
            Self::KeyConflict(_) => ErrorCode::Conflict,
            Self::Member(error) => error.code(),
            Self::ChildAccount(error) => error.code(),
            Self::UnknownRoute { .. } => ErrorCode::UnknownRoute,
            Self::UnknownModel(_) => ErrorCode::ModelNotFound,
            Self::MethodNotAllowed(_) => ErrorCode::MethodNotAllowed,
            Self::InvalidPath(_) => ErrorCode::InvalidPath,
            Self::InvalidParameter(_) => ErrorCode::InvalidParameter,
            Self::ValidationFailed(_) => ErrorCode::ValidationFailed,
            Self::TooManyStreams { .. } => ErrorCode::TooManyStreams,
            Self::WebSocketNotSupported => ErrorCode::WebSocketNotSupported,
            Self::UpgradeRequired => ErrorCode::UpgradeRequired,
            Self::InsufficientCredits(_) => ErrorCode::InsufficientCredits,
            Self::Payment(error) => error.code(),
            Self::PaymentRequired { .. } | Self::CreditsForSale | Self::SignIn { price: Some(_), .. } => {
                ErrorCode::PaymentRequired
            }
            Self::SignIn { price: None, .. } => ErrorCode::Unauthorized,
            Self::OffersNotMade => ErrorCode::NotFound,
            Self::Offer(refusal) => refusal.code(),
            Self::NoSuchReceipt | Self::NoSuchRequest => ErrorCode::NotFound,
            Self::NoSuchWebhook => ErrorCode::WebhookNotFound,
            Self::NoSuchDelivery => ErrorCode::DeliveryNotFound,
            Self::TooManyWebhooks => ErrorCode::TooManyWebhooks,
            Self::WebhookInactive => ErrorCode::Conflict,
            Self::WebhooksNotOffered => ErrorCode::NotFound,
            Self::Recovery(error) => error.code(),
            Self::Signup(error) => error.code(),
            Self::StorageUnavailable => ErrorCode::StorageUnavailable,
            Self::OutcomeUnknown => ErrorCode::OutcomeUnknown,
            Self::Repeated(repetition) | Self::PaymentRepeated(repetition) => repetition.code(),
            Self::Overloaded => ErrorCode::Overloaded,
            Self::ShuttingDown => ErrorCode::ShuttingDown,
            Self::NotRefunded | Self::Internal => ErrorCode::InternalError,
        }
    }

    /// Seconds until a retry may succeed, for `Retry-After`.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::Refused(refusal) => refusal.retry_after_seconds(),
            Self::TooManyStreams { .. } => Some(STREAM_RETRY_SECONDS),
            Self::Repeated(Repetition::InProgress { retry_after_seconds })
            | Self::PaymentRepeated(Repetition::InProgress { retry_after_seconds }) => Some(*retry_after_seconds),
            Self::Payment(error) => error.retry_after_seconds(),
            Self::Offer(refusal) => refusal.retry_after_seconds(),
            Self::Recovery(error) => error.retry_after_seconds(),
            Self::Signup(error) => error.retry_after_seconds(),
            Self::StorageUnavailable | Self::OutcomeUnknown | Self::Overloaded | Self::ShuttingDown => {
                Some(RETRY_SOON_SECONDS)
            }
            _ => None,
        }
    }

    /// The response body.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let mut body = ErrorBody::new(self.code(), self.to_string());
        body.retry_after_sec = self.retry_after_seconds();
        match self {
            Self::InvalidParameter(fields) | Self::ValidationFailed(fields) => body.fields = Some(fields.clone()),
            Self::Refused(refusal) => add_refusal(&mut body, refusal),
            Self::InsufficientCredits(payment_required) => {
                body.credit_balance = Some(payment_required.balance);
                body.required = Some(Required::Credits(payment_required.required));
                body.plans_url = payment_required.plans_url.clone();
                body.topup_url = payment_required.topup_url.clone();
                body.offer = Some(Arc::clone(&payment_required.plans));
            }
            // OpenAI's clients show which parameter it is.
            Self::UnknownModel(_) => body.fields = Some([("model".to_owned(), "has no price here".to_owned())].into()),
            Self::UnknownRoute { nearest, .. } => body.nearest_route = nearest.as_deref().map(str::to_owned),
            Self::Payment(error) => error.add_context(&mut body),
            Self::MaxCostExceeded { price, max_cost, .. } => {
                body.required = Some(Required::Credits(*price));
                body.max_cost = Some(max_cost.credits());
            }
            Self::PaymentRequired { price } | Self::SignIn { price: Some(price), .. } => {
                body.required = Some(Required::Credits(*price));
            }
            _ => {}
        }
        body
    }

    /// The use of the caller's rate limits, if the response shows it.
    pub(crate) fn rate(&self) -> Option<&RateStatus> {
        match self {
            Self::Refused(refusal) => refusal.rate(),
            Self::InsufficientCredits(payment_required) => Some(&payment_required.rate),
            _ => None,
        }
    }

    /// The response headers, other than `Content-Type`.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = match self {
            Self::Unauthorized
            | Self::KeyRefused(_)
            | Self::KeyNotAllowed(KeyRefusal::Expired { .. })
            | Self::SignIn { price: None, .. } => {
                vec![("www-authenticate", "Bearer".to_owned())]
            }
            Self::MethodNotAllowed(methods) => vec![("allow", methods.join(", "))],
            // RFC 9110, section 15.5.22.
            Self::UpgradeRequired => {
                vec![("upgrade", "websocket".to_owned()), ("connection", "upgrade".to_owned())]
            }
            _ => self.rate().map(rate_headers).unwrap_or_default(),
        };
        if let Some(seconds) = self.retry_after_seconds() {
            headers.push(("retry-after", seconds.to_string()));
        }
        headers
    }
}

/// The context of a refused charge.
fn add_refusal(body: &mut ErrorBody, refusal: &Refusal) {
    body.required = refusal.required().map(Required::Credits);
    match refusal {
        Refusal::RateLimited { window, rate } => {
            body.limit_window = Some(window.as_str());
            body.rate_limits = Some(rate.limits);
            body.tokens_per_minute = Some(rate.tokens.limit).filter(|_| matches!(window, LimitWindow::Tokens));
        }
        Refusal::KeyBudget { exhausted, .. } => {
            body.limit = Some(exhausted.budget.limit);
            body.limit_remaining = Some(exhausted.remaining());
            body.limit_reset = exhausted.budget.reset.map(BudgetReset::as_str);
            body.resets_at = exhausted.resets_at();
        }
        _ => {}
    }
}
