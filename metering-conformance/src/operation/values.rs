//! Random values that operations of several subjects have.

use metering_core::access::RateLimits;
use metering_core::money::LedgerKind;
use proptest::option;
use proptest::prelude::{Just, Strategy, prop_oneof};

use crate::scene::BASE;

/// How many email addresses operations choose from.
pub(super) const EMAILS: u8 = 5;

/// A number, before it is taken modulo how many items exist.
pub(super) fn number() -> impl Strategy<Value = usize> {
    0..60_usize
}

/// Mostly a new key.
pub(super) fn stale_key() -> impl Strategy<Value = Option<usize>> {
    option::weighted(0.1, number())
}

pub(super) fn kind() -> impl Strategy<Value = LedgerKind> {
    // Only settling payments writes the other kinds.
    let kinds = LedgerKind::ALL.into_iter().filter(|kind| !LedgerKind::SETTLEMENTS.contains(kind));
    proptest::sample::select(kinds.collect::<Vec<_>>())
}

pub(super) fn limits() -> impl Strategy<Value = RateLimits> {
    let or_none = |limit: u32, least: u32| if limit < least { 0 } else { limit };
    (0..8_u32, 0..20_u32)
        .prop_map(move |(minute, day)| RateLimits::per_minute(or_none(minute, 4)).and_per_day(or_none(day, 8)))
}

/// An amount to add: mostly some base calls, sometimes a correction, rarely an extreme amount.
pub(super) fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![
        12 => 0..30 * BASE,
        3 => -10 * BASE..0,
        1 => i64::MAX - BASE..=i64::MAX,
        1 => i64::MIN..i64::MIN + BASE,
    ]
}

/// A price: mostly about a base call, sometimes zero, rarely an extreme amount.
pub(super) fn price() -> impl Strategy<Value = i64> {
    prop_oneof![
        12 => 1..3 * BASE,
        4 => Just(BASE),
        1 => Just(0),
        1 => i64::MAX - BASE..=i64::MAX,
    ]
}
