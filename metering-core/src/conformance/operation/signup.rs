//! Random operations about signing up without paying. There are so few tokens, codes and solutions that they collide.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};

use crate::ledger::LedgerKind;
use crate::signup::{SessionHash, UserCode};

use super::{EMAILS, amount, kind, stale_key};

/// How many tokens and user codes sessions have.
pub(in crate::conformance) const SESSIONS: u8 = 2;
/// How many solutions challenges have.
const SOLUTIONS: u8 = 2;

/// The tokens that operations name.
pub(in crate::conformance) fn token(number: u8) -> SessionHash {
    SessionHash::from_bytes([number; 32])
}

/// The user codes that operations name.
pub(in crate::conformance) fn code(number: u8) -> UserCode {
    ["BCDF-GHJB", "BCDF-GHJC"][usize::from(number % SESSIONS)].parse().unwrap()
}

/// Something done about signup sessions.
#[derive(Debug, Clone)]
pub enum Signup {
    /// A session is opened.
    Open {
        /// The number of its token.
        token: u8,
        /// The number of its user code.
        code: u8,
        /// The number of its email address, out of a few.
        email: u8,
        /// Whether its email address is written in capitals.
        capitals: bool,
    },
    /// A session is approved.
    Approve {
        /// The number of its user code.
        code: u8,
    },
    /// A session is redeemed.
    Redeem {
        /// The number of its token.
        token: u8,
        /// Kind and atoms of the account's first entries.
        entries: Vec<(LedgerKind, i64)>,
        /// The number of the key, of all that were ever made; a new one if there is none.
        key: Option<usize>,
    },
    /// A bot challenge is solved.
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

/// Mostly the token and the code of one number, so that what is approved is what is redeemed.
fn token_and_code() -> impl Strategy<Value = (u8, u8)> {
    prop_oneof![4 => (0..SESSIONS).prop_map(|number| (number, number)), 1 => (0..SESSIONS, 0..SESSIONS)]
}
