//! Kinds of events, by the names that receivers see.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// The balance, or what remains of a key's budget, fell below its threshold.
    BalanceLow,
    /// The balance reached zero or below, or did not cover what a request would have held.
    BalanceExhausted,
    /// A key's budget is used up, or does not cover a request.
    BudgetExhausted,
    /// A payment was credited, or credited again after a reversal.
    PaymentCredited,
    /// The credits of a payment were taken back, because its transaction is no longer on the chain.
    PaymentReversed,
    /// A key was created.
    KeyCreated,
    /// A key was revoked.
    KeyRevoked,
    /// A key was reported as leaked, and no longer works.
    KeyLeaked,
    /// A hold was settled because its lease ended.
    HoldExpired,
    /// The owner of a webhook sent a test.
    WebhookTest,
}

/// The text names no kind of event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a kind of event; the kinds are {kinds}", kinds = EventKind::ALL.map(EventKind::as_str).join(", "))]
pub struct EventKindError(String);

impl EventKind {
    /// Every kind that something causes: all except tests.
    pub const ALL: [Self; 9] = [
        Self::BalanceLow,
        Self::BalanceExhausted,
        Self::BudgetExhausted,
        Self::PaymentCredited,
        Self::PaymentReversed,
        Self::KeyCreated,
        Self::KeyRevoked,
        Self::KeyLeaked,
        Self::HoldExpired,
    ];

    /// The kind's name on the wire and in stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BalanceLow => "balance.low",
            Self::BalanceExhausted => "balance.exhausted",
            Self::BudgetExhausted => "budget.exhausted",
            Self::PaymentCredited => "payment.credited",
            Self::PaymentReversed => "payment.reversed",
            Self::KeyCreated => "key.created",
            Self::KeyRevoked => "key.revoked",
            Self::KeyLeaked => "key.leaked",
            Self::HoldExpired => "hold.expired",
            Self::WebhookTest => "webhook.test",
        }
    }

    /// The kind with that name, tests included.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().chain([Self::WebhookTest]).find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EventKind {
    type Err = EventKindError;

    /// A kind that a webhook can ask for.
    fn from_str(text: &str) -> Result<Self, EventKindError> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| EventKindError(text.to_owned()))
    }
}

impl Serialize for EventKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
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
