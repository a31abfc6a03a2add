//! Random holds, and operations on them.

use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

use super::item::{HoldStep, Item};
use super::values::{number, price};
use crate::scene::BASE;

/// A hold to open, or an update of one.
pub(super) fn hold_item() -> impl Strategy<Value = Item> {
    let request = option::weighted(0.3, 0..4_u8);
    // Mostly leases of seconds, which the clock often passes.
    let lease = prop_oneof![3 => 0..60_000_u32, 1 => 0..90_000_000_u32];
    let fallback = prop_oneof![3 => 0..3 * BASE, 1 => Just(0), 1 => Just(i64::MAX), 1 => Just(-BASE)];
    prop_oneof![
        2 => (number(), price(), 0..4_u8, 0..3_u8, request, (lease, fallback)).prop_map(
            |(key, atoms, line, path, request, hold)| {
                let hold = Some(hold);
                Item::Charge { key, atoms, line, path, request, hold }
            }
        ),
        3 => (number(), step()).prop_map(|(hold, step)| Item::Update { hold, step }),
    ]
}

fn step() -> impl Strategy<Value = HoldStep> {
    let cost = prop_oneof![6 => 0..4 * BASE, 1 => -BASE..0, 1 => i64::MAX - BASE..=i64::MAX];
    prop_oneof![
        6 => (cost, any::<bool>()).prop_map(|(cost, in_full)| HoldStep::Capture(cost, in_full)),
        1 => Just(HoldStep::CaptureFallback),
        2 => Just(HoldStep::Release),
        3 => Just(HoldStep::Expire),
        2 => (-60_000..200_000_i64).prop_map(HoldStep::Renew),
    ]
}
