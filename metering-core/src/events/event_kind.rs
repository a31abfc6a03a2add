//! Kinds of events, by the names that receivers see.

use std::str::FromStr;

use crate::named_enum::named_enum;

named_enum! {
    /// What happened.
    pub enum EventKind {
        /// The balance, or what remains of a key's budget, fell below its threshold.
        BalanceLow = "balance.low",
        /// The balance reached zero or below, or did not cover what a request would have held.
        BalanceExhausted = "balance.exhausted",
        /// A key's budget is used up, or does not cover a request.
        BudgetExhausted = "budget.exhausted",
        /// A payment was credited, or credited again after a reversal.
        PaymentCredited = "payment.credited",
        /// The credits of a payment were taken back, because its transaction is no longer on the chain.
        PaymentReversed = "payment.reversed",
        /// A key was created.
        KeyCreated = "key.created",
        /// A key was revoked.
        KeyRevoked = "key.revoked",
        /// A key was reported as leaked, and no longer works.
        KeyLeaked = "key.leaked",
        /// A hold was settled because its lease ended.
        HoldExpired = "hold.expired",
    } unlisted {
        /// The owner of a webhook sent a test.
        WebhookTest = "webhook.test",
    }
}

/// The text names no kind of event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a kind of event; the kinds are {kinds}", kinds = EventKind::ALL.map(EventKind::as_str).join(", "))]
pub struct EventKindError(String);

impl FromStr for EventKind {
    type Err = EventKindError;

    /// A kind that a webhook can ask for.
    fn from_str(text: &str) -> Result<Self, EventKindError> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| EventKindError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_by_their_names() {
        for kind in EventKind::ALL {
            assert_eq!((kind.as_str().parse(), EventKind::from_name(kind.as_str())), (Ok(kind), Some(kind)));
        }
        assert!("webhook.test".parse::<EventKind>().is_err(), "nothing to ask for");
        assert_eq!(EventKind::from_name("webhook.test"), Some(EventKind::WebhookTest));
    }
}
