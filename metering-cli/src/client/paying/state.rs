//! The state of a payment, and the next action for its call.

use metering_core::Timestamp;
use serde::{Deserialize, Serialize};

/// How long after its expiry an authorization may still be executed, because clocks differ.
const CLOCK_MARGIN_SECONDS: u64 = 120;

/// The state of a payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum State {
    /// It is signed and may have been sent.
    Signed,
    /// It was sent, and it is not known whether it was executed.
    Unknown,
    /// The service refused it every time. It can still be executed until it expires.
    Refused { why: String },
    /// It was executed, and the response to the call has not arrived yet.
    Settled { transaction: Option<String> },
    /// The response to the call has arrived.
    Done { transaction: Option<String> },
    /// The user gave it up: a new payment may be made.
    GivenUp,
}

impl State {
    /// Whether this payment is still the only one that may be sent for its call. A refused payment stops being that
    /// once it has expired.
    pub(crate) fn is_open(&self, valid_before: u64, now: Timestamp) -> bool {
        match self {
            Self::Signed | Self::Unknown | Self::Settled { .. } => true,
            Self::Refused { .. } => !is_expired(valid_before, now),
            Self::Done { .. } | Self::GivenUp => false,
        }
    }

    /// Whether it may still be executed, as far as anyone knows.
    pub(crate) fn is_live(&self, valid_before: u64, now: Timestamp) -> bool {
        matches!(self, Self::Signed | Self::Unknown | Self::Refused { .. }) && !is_expired(valid_before, now)
    }

    /// Whether the service reports that the payment was certainly not executed.
    pub(crate) const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

/// Whether it certainly can no longer be executed.
fn is_expired(valid_before: u64, now: Timestamp) -> bool {
    let now = u64::try_from(now.unix_seconds()).unwrap_or(0);
    now > valid_before.saturating_add(CLOCK_MARGIN_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certain_makes_way_for_another_payment() {
        let at = |seconds: i64| Timestamp::from_unix_millis(seconds * 1_000);
        let (refused, settled) = (State::Refused { why: String::new() }, State::Settled { transaction: None });
        // state, while it is valid, right after it expired, two minutes later
        let table = [
            (State::Signed, [true, true, true]),
            (State::Unknown, [true, true, true]),
            (refused, [true, true, false]),
            (settled, [true, true, true]),
            (State::Done { transaction: None }, [false, false, false]),
            (State::GivenUp, [false, false, false]),
        ];
        for (state, expected) in table {
            assert_eq!([900, 1_001, 1_121].map(|now| state.is_open(1_000, at(now))), expected, "{state:?}");
            let is_live = state.is_live(1_000, at(900));
            assert_eq!(is_live, expected[0] && !matches!(state, State::Settled { .. }), "{state:?}");
            assert!(!state.is_live(1_000, at(1_121)), "{state:?}");
        }
    }
}
