//! Which endpoint a client needs after a refusal. Core's messages name none, because embedders choose their own paths.

use metering_core::Error;
use metering_core::payments::{PaymentError, RecoveryError};

/// A sentence that follows the error's message.
pub(super) fn next_step(error: &Error) -> Option<&'static str> {
    match error {
        Error::Payment(error) => after_payment(error),
        Error::OffersNotMade => Some("GET /credits/plans lists the plans on sale."),
        Error::Recovery(RecoveryError::UnknownChallenge | RecoveryError::Expired) => {
            Some("Request one with POST /api-key/recover/challenge.")
        }
        _ => None,
    }
}

fn after_payment(error: &PaymentError) -> Option<&'static str> {
    Some(match error {
        PaymentError::UnsupportedChain(_) => "GET /credits/plans lists the chains.",
        PaymentError::UnknownPlan => "GET /credits/plans lists the plans on sale.",
        PaymentError::PayerTaken => {
            "To top up, use POST /credits/topup. For a new key, start with POST /api-key/recover/challenge."
        }
        PaymentError::UnknownQuote => "Request one with POST /signup/pay/quote.",
        PaymentError::UnknownTopUpQuote => "Request one with POST /credits/topup/quote.",
        PaymentError::AlreadyClaimed => "To get a new key, start with POST /api-key/recover/challenge.",
        PaymentError::Reserved => "To claim a signup quote, use POST /signup/pay/claim.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Problem;

    #[test]
    fn messages_name_the_next_endpoint() {
        let table = [
            (PaymentError::UnknownPlan.into(), "GET /credits/plans"),
            (PaymentError::UnsupportedChain(5).into(), "GET /credits/plans"),
            (PaymentError::PayerTaken.into(), "POST /credits/topup"),
            (PaymentError::UnknownQuote.into(), "POST /signup/pay/quote"),
            (PaymentError::UnknownTopUpQuote.into(), "POST /credits/topup/quote"),
            (PaymentError::AlreadyClaimed.into(), "POST /api-key/recover/challenge"),
            (PaymentError::Reserved.into(), "POST /signup/pay/claim"),
            (RecoveryError::UnknownChallenge.into(), "POST /api-key/recover/challenge"),
            (RecoveryError::Expired.into(), "POST /api-key/recover/challenge"),
        ];
        for (error, endpoint) in table {
            let own: Error = error;
            assert!(!own.to_string().contains('/'), "{own}");
            let problem = Problem::from(own.clone());
            let message = problem.message();
            assert!(message.starts_with(&own.to_string()) && message.contains(endpoint), "{message}");
        }
    }
}
