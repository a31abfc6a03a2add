//! Random operations, for [`agrees_with_model`](super::agrees_with_model).
//!
//! Operations refer to accounts, keys and receipts by number, modulo how many exist at that moment. So any sequence is
//! valid, and it shrinks to a shorter valid one.

use metering_core::access::{BudgetReset, RateLimits};
use metering_core::money::{Credits, LedgerKind, Refill};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

use super::scene::BASE;

mod authorization;
mod hold;
mod item;
mod key;
mod sale;
mod signup;
mod values;

pub(super) use authorization::AUTHORIZATIONS;
pub use authorization::AuthorizationOperation;
use authorization::authorization_operation;
use hold::hold_item;
pub use item::{HoldStep, Item};
pub use key::KeyOperation;
use key::key_operation;
use sale::sale;
pub(super) use sale::{CHAINS, HASHES, NONCES, TARGETS, WALLETS, chain, nonce, target};
pub use sale::{Price, Sale};
pub use signup::Signup;
use signup::signup;
pub(super) use signup::{SESSIONS, code, token};
use values::{EMAILS, amount, kind, limits, number, price, stale_key};

/// An operation on a store, or a step of the clock.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Create an account.
    Create {
        /// The number of its email address, from a small set.
        email: Option<u8>,
        /// Whether its email address is in upper case.
        capitals: bool,
        /// The number of its payer's wallet, from a small set.
        wallet: Option<u8>,
        /// Its rate limits.
        limits: RateLimits,
        /// Kind and atoms of its first entries.
        entries: Vec<(LedgerKind, i64)>,
        /// The number of its key among all keys so far; `None` for a new key.
        key: Option<usize>,
    },
    /// Commit a batch.
    Commit(Vec<Item>),
    /// Write a ledger entry.
    Post {
        /// The number of the account.
        account: usize,
        /// The kind of the entry.
        kind: LedgerKind,
        /// Its amount.
        atoms: i64,
    },
    /// Replace rate limits.
    SetLimits {
        /// The number of the account.
        account: usize,
        /// The new limits.
        limits: RateLimits,
    },
    /// Set the threshold of an account's alert.
    SetAlert {
        /// The number of the account.
        account: usize,
        /// The atoms; `None` for never.
        threshold: Option<i64>,
    },
    /// Revoke an account.
    Revoke {
        /// The number of the account.
        account: usize,
    },
    /// Replace a key.
    ReplaceKey {
        /// The number of the account.
        account: usize,
        /// The number of the key among all keys so far; `None` for a new key.
        key: Option<usize>,
    },
    /// An operation on the keys of accounts.
    Keys(KeyOperation),
    /// An operation on quotes, payments or challenges.
    Sell(Sale),
    /// An operation on authorizations.
    Authorize(AuthorizationOperation),
    /// An operation on signup sessions.
    SignUp(Signup),
    /// Replace the rule for recurring credits.
    SetRefill(Option<Refill>),
    /// Give accounts their turn to be refilled.
    Refill {
        /// How many.
        limit: u8,
    },
    /// Delete what has expired.
    Forget,
    /// Move the clock, sometimes a little backwards.
    Pass {
        /// By how much.
        millis: i64,
    },
    /// Switch to the next opener. [`operations`] has none of these, because it is for one opener.
    Turn,
}

/// Sequences of operations for one opener.
pub fn operations() -> impl Strategy<Value = Vec<Operation>> {
    sequences(vec(operation(), 1..80))
}

/// Sequences of operations for several openers.
pub fn operations_by_turns() -> impl Strategy<Value = Vec<Operation>> {
    sequences(vec(prop_oneof![1 => Just(Operation::Turn), 2 => operation()], 1..120))
}

/// Sequences that start with accounts and quotes, so later operations have something to work on.
fn sequences(then: impl Strategy<Value = Vec<Operation>>) -> impl Strategy<Value = Vec<Operation>> {
    let quotes = vec(sale::quote().prop_map(Operation::Sell), 1..5);
    (vec(create(), 1..3), quotes, then).prop_map(|(made, quotes, then)| {
        let operations = made.into_iter().chain(quotes).chain(then);
        operations.collect()
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        2 => create(),
        12 => vec(item(), 0..8).prop_map(Operation::Commit),
        4 => (number(), kind(), amount())
            .prop_map(|(account, kind, atoms)| Operation::Post { account, kind, atoms }),
        2 => (number(), limits()).prop_map(|(account, limits)| Operation::SetLimits { account, limits }),
        3 => (number(), option::weighted(0.8, 0..20 * BASE))
            .prop_map(|(account, threshold)| Operation::SetAlert { account, threshold }),
        1 => number().prop_map(|account| Operation::Revoke { account }),
        2 => (number(), stale_key()).prop_map(|(account, key)| Operation::ReplaceKey { account, key }),
        12 => key_operation().prop_map(Operation::Keys),
        24 => sale().prop_map(Operation::Sell),
        20 => authorization_operation().prop_map(Operation::Authorize),
        10 => signup().prop_map(Operation::SignUp),
        1 => option::weighted(0.8, refill()).prop_map(Operation::SetRefill),
        4 => (1..4_u8).prop_map(|limit| Operation::Refill { limit }),
        1 => Just(Operation::Forget),
        5 => millis().prop_map(|millis| Operation::Pass { millis }),
    ]
}

fn create() -> impl Strategy<Value = Operation> {
    let entries = vec((kind(), amount()), 0..3);
    (option::of(0..EMAILS), any::<bool>(), option::of(0..WALLETS), limits(), entries, stale_key()).prop_map(
        |(email, capitals, wallet, limits, entries, key)| Operation::Create {
            email,
            capitals,
            wallet,
            limits,
            entries,
            key,
        },
    )
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        4 => (number(), price(), 0..4_u8, 0..3_u8, option::weighted(0.3, 0..4_u8))
            .prop_map(|(key, atoms, line, path, request)| {
                let hold = None;
                Item::Charge { key, atoms, line, path, request, hold }
            }),
        4 => hold_item(),
        1 => number().prop_map(|receipt| Item::Refund { receipt }),
    ]
}

/// A rule: mostly some base calls, rarely extreme amounts.
fn refill() -> impl Strategy<Value = Refill> {
    let amount = || prop_oneof![6 => 1..20 * BASE, 1 => i64::MAX - BASE..=i64::MAX].prop_map(Credits::from_atoms);
    (amount(), proptest::sample::select(BudgetReset::ALL.to_vec()), amount()).prop_map(|(credits, every, cap)| Refill {
        credits,
        every,
        cap,
    })
}

fn millis() -> impl Strategy<Value = i64> {
    const MINUTE: i64 = 60_000;
    const DAY: i64 = 24 * 60 * MINUTE;
    /// How long challenges, sessions and quotes live, and how long each is honoured or stored.
    const ENDS: [i64; 7] = [
        10 * MINUTE,
        15 * MINUTE,
        30 * MINUTE,
        DAY + 10 * MINUTE,
        DAY + 15 * MINUTE,
        7 * DAY + 30 * MINUTE,
        97 * DAY + 30 * MINUTE,
    ];
    prop_oneof![
        4 => 0..MINUTE,
        2 => MINUTE..10 * MINUTE,
        2 => -2 * MINUTE..0,
        // Exactly at one of these ends, and just before and after it.
        2 => (proptest::sample::select(ENDS.as_slice()), -1..=1_i64).prop_map(|(end, by)| end + by),
        1 => DAY - 1..=DAY + 1,
        1 => 0..3 * DAY,
        1 => -DAY..0,
        // After a quote's grace period, and after its deletion.
        1 => prop_oneof![6 * DAY..9 * DAY, 96 * DAY..99 * DAY],
    ]
}
