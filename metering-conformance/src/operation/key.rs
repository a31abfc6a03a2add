//! Random operations on keys: create, change, rotate, revoke, report.

use metering_core::access::{BudgetReset, RateLimits};
use proptest::option;
use proptest::prelude::{Strategy, any, prop_oneof};

use super::super::scene::BASE;
use super::values::{limits, number, stale_key};

/// An operation on the keys of accounts. Keys have a number within their account.
#[derive(Debug, Clone)]
pub enum KeyOperation {
    /// Create a key.
    Create {
        /// The number of the account.
        account: usize,
        /// The number of its parent; `None` when the operator creates it.
        parent: Option<usize>,
        /// Whether it may manage keys.
        manages: bool,
        /// Whether it may call only some routes.
        narrow: bool,
        /// Its budget: atoms, and when it starts again.
        budget: Option<(i64, Option<BudgetReset>)>,
        /// Its alert is raised when less than this remains of its budget.
        alert: Option<i64>,
        /// Its rate limits.
        limits: RateLimits,
        /// In how many minutes it expires.
        minutes: Option<u8>,
        /// The number of its secret among all secrets so far; `None` for a new one.
        secret: Option<usize>,
    },
    /// Change terms.
    Change {
        /// The number of the account.
        account: usize,
        /// The number of the key.
        key: usize,
        /// The number of the requesting key; `None` for the operator.
        actor: Option<usize>,
        /// Whether it is disabled.
        disabled: Option<bool>,
        /// The credits of its budget.
        limit: Option<Option<i64>>,
        /// The period of its budget.
        reset: Option<Option<BudgetReset>>,
        /// Its alert is raised when less than this remains of its budget.
        alert: Option<Option<i64>>,
        /// Its requests per day.
        requests_per_day: Option<u32>,
    },
    /// Replace the secret of a key.
    Rotate {
        /// The number of the account.
        account: usize,
        /// The number of the key.
        key: usize,
        /// For how many minutes the old secret still works.
        minutes: Option<u8>,
        /// The number of the new secret among all secrets so far; `None` for a new one.
        secret: Option<usize>,
    },
    /// Revoke a key.
    Revoke {
        /// The number of the account.
        account: usize,
        /// The number of the key.
        key: usize,
    },
    /// Report a secret as leaked.
    Leak {
        /// The number of the secret among all secrets so far.
        secret: usize,
    },
    /// Replace a secret that works.
    ReplaceLive {
        /// The number of the secret among all secrets so far.
        old: usize,
        /// The number of the new secret; `None` for a new one.
        secret: Option<usize>,
    },
}

fn reset() -> impl Strategy<Value = Option<BudgetReset>> {
    option::of(proptest::sample::select(BudgetReset::ALL.to_vec()))
}

fn credits() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..12 * BASE, 1 => i64::MAX - BASE..=i64::MAX]
}

pub(super) fn key_operation() -> impl Strategy<Value = KeyOperation> {
    let create = (
        number(),
        option::of(0..8_usize),
        any::<bool>(),
        option::weighted(0.5, (credits(), reset())),
        limits(),
        option::weighted(0.2, 0..60_u8),
        stale_key(),
        proptest::bool::weighted(0.2),
        option::of(0..8 * BASE),
    );
    let change = (
        number(),
        0..8_usize,
        option::weighted(0.3, 0..8_usize),
        option::weighted(0.3, any::<bool>()),
        option::of(option::weighted(0.8, credits())),
        option::weighted(0.3, reset()),
        option::weighted(0.3, 0..9_u32),
        option::weighted(0.4, option::weighted(0.8, 0..8 * BASE)),
    );
    let rotate = (number(), 0..8_usize, option::of(0..60_u8), stale_key());
    prop_oneof![
        5 => create.prop_map(|(account, parent, manages, budget, limits, minutes, secret, narrow, alert)| {
            KeyOperation::Create { account, parent, manages, narrow, budget, alert, limits, minutes, secret }
        }),
        5 => change.prop_map(|(account, key, actor, disabled, limit, reset, requests_per_day, alert)| {
            KeyOperation::Change { account, key, actor, disabled, limit, reset, alert, requests_per_day }
        }),
        2 => rotate.prop_map(|(account, key, minutes, secret)| KeyOperation::Rotate { account, key, minutes, secret }),
        1 => (number(), 0..8_usize).prop_map(|(account, key)| KeyOperation::Revoke { account, key }),
        1 => number().prop_map(|secret| KeyOperation::Leak { secret }),
        1 => (number(), stale_key()).prop_map(|(old, secret)| KeyOperation::ReplaceLive { old, secret }),
    ]
}
