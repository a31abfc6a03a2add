//! Random operations about signing up without paying. There are so few tokens, codes and solutions that they collide
//! often.

use metering_core::money::LedgerKind;
use metering_core::signups::{SessionHash, UserCode};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};

use super::values::{EMAILS, amount, kind, stale_key};

/// How many session tokens and user codes exist.
pub(crate) const SESSIONS: u8 = 2;
/// How many challenge solutions exist.
const SOLUTIONS: u8 = 2;

/// The session token with this number.
pub(crate) fn token(number: u8) -> SessionHash {
    SessionHash::from_bytes([number; 32])
}

/// The user code with this number.
pub(crate) fn code(number: u8) -> UserCode {
    ["BCDF-GHJB", "BCDF-GHJC"][usize::from(number % SESSIONS)].parse().unwrap()
}

/// An operation on signup sessions.
#[derive(Debug, Clone)]
pub enum Signup {
    /// Open a session.
    Open {
        /// The number of its token.
        token: u8,
        /// The number of its user code.
        code: u8,
        /// The number of its email address, from a small set.
        email: u8,
        /// Whether its email address is in upper case.
        capitals: bool,
    },
    /// Approve a session.
    Approve {
        /// The number of its user code.
        code: u8,
    },
    /// Redeem a session.
    Redeem {
        /// The number of its token.
        token: u8,
        /// Kind and atoms of the account's first entries.
        entries: Vec<(LedgerKind, i64)>,
        /// The number of the key among all keys so far; `None` for a new key.
        key: Option<usize>,
    },
    /// Use a solution of a bot challenge.
    Solve {
        /// The number of the solution.
        solution: u8,
    },
}

pub(super) fn signup() -> impl Strategy<Value = Signup> {
    prop_oneof![
        3 => (token_and_code(), 0..EMAILS, any::<bool>())
            .prop_map(|((token, code), email, capitals)| Signup::Open { token, code, email, capitals }),
        3 => (0..SESSIONS).prop_map(|code| Signup::Approve { code }),
        3 => (0..SESSIONS, vec((kind(), amount()), 0..3), stale_key())
            .prop_map(|(token, entries, key)| Signup::Redeem { token, entries, key }),
        1 => (0..SOLUTIONS).prop_map(|solution| Signup::Solve { solution }),
    ]
}

/// Mostly the token and code with the same number, so that approved sessions are redeemed.
fn token_and_code() -> impl Strategy<Value = (u8, u8)> {
    prop_oneof![4 => (0..SESSIONS).prop_map(|number| (number, number)), 1 => (0..SESSIONS, 0..SESSIONS)]
}
