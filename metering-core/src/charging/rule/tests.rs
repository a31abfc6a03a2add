//! The charge rule, case by case.

use proptest::prelude::*;

use super::*;
use crate::access::account::RateLimits;
use crate::charging::rate::Window;
use crate::money::alert::BalanceAlert;

fn state(balance: i64, per_minute: u32, per_day: u32) -> MeterState {
    let balance = Credits::from_atoms(balance);
    MeterState {
        totals: Totals { balance, granted: balance, ..Totals::default() },
        limits: RateLimits::per_minute(per_minute).and_per_day(per_day),
        alert: BalanceAlert::default(),
        minute: Window::default(),
        day: Window::default(),
    }
}

const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

#[test]
fn the_last_charge_may_go_below_zero_by_less_than_its_price() {
    // balance, price, balance after
    let table = [
        (1, 1_000_000, Some(1 - 1_000_000)),
        (1_000_000, 1_000_000, Some(0)),
        (0, 1_000_000, None),
        (-1, 1_000_000, None),
        (0, 0, None),
        (1, 0, Some(1)),
        (i64::MAX, 1, Some(i64::MAX - 1)),
        (1, i64::MAX, Some(1 - i64::MAX)),
    ];
    for (balance, price, after) in table {
        let mut state = state(balance, 0, 0);
        let before = state;
        let accepted = apply(&mut state, Debit::Charge(Credits::from_atoms(price)), NOON).is_ok();
        assert_eq!(accepted, after.is_some(), "{balance} {price}");
        match after {
            Some(after) => assert_eq!(state.totals.balance.atoms(), after),
            None => assert_eq!(state, before),
        }
    }
}

#[test]
fn caps_count_accepted_requests_per_window() {
    let mut state = state(i64::MAX, 2, 3);
    let minute_later = NOON.saturating_add(std::time::Duration::from_secs(60));
    let day_later = NOON.saturating_add(std::time::Duration::from_secs(86_400));
    let limited = |outcome: Result<RateStatus, Refusal>| match outcome {
        Err(Refusal::RateLimited { window, .. }) => Some(window),
        Err(other) => panic!("{other:?}"),
        Ok(_) => None,
    };
    let mut charge = |now| limited(apply(&mut state, Debit::Charge(Credits::BASE_CALL), now));
    assert_eq!(charge(NOON), None);
    assert_eq!(charge(NOON), None);
    assert_eq!(charge(NOON), Some(LimitWindow::Minute));
    assert_eq!(charge(minute_later), None);
    assert_eq!(charge(minute_later), Some(LimitWindow::Day));
    // A lagging clock's window is over, so its request counts in the newest one.
    assert_eq!(charge(NOON), Some(LimitWindow::Day));
    assert_eq!(charge(day_later), None);
}

/// How a clock reading changes the windows of an account that had 3 requests accepted at the first reading. The counts
/// are for the minute and the day after one more request.
#[test]
fn windows_follow_the_clock_but_not_its_errors() {
    const SECOND: i64 = 1_000;
    const MINUTE: i64 = 60 * SECOND;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let midnight = NOON.day().start().unix_millis() + DAY;
    // first reading, second reading, counts of minute and day after it
    let table = [
        ("the same moment", NOON.unix_millis(), NOON.unix_millis(), (4, 4)),
        ("later in the minute", NOON.unix_millis(), NOON.unix_millis() + 59 * SECOND, (4, 4)),
        ("the next minute", NOON.unix_millis(), NOON.unix_millis() + MINUTE, (1, 4)),
        ("the next day", NOON.unix_millis(), midnight, (1, 1)),
        ("far ahead", NOON.unix_millis(), NOON.unix_millis() + 400 * DAY, (1, 1)),
        ("a second back, across a minute boundary", NOON.unix_millis(), NOON.unix_millis() - SECOND, (4, 4)),
        ("a minute back", NOON.unix_millis(), NOON.unix_millis() - MINUTE, (4, 4)),
        ("more than a minute back", NOON.unix_millis(), NOON.unix_millis() - MINUTE - SECOND, (1, 4)),
        ("an hour back", NOON.unix_millis(), NOON.unix_millis() - HOUR, (1, 4)),
        ("a second back, across midnight", midnight, midnight - SECOND, (4, 4)),
        ("minutes back, across midnight", midnight, midnight - 10 * MINUTE, (1, 4)),
        ("an hour back, across midnight", midnight, midnight - HOUR, (1, 4)),
        ("more than an hour back, across midnight", midnight, midnight - HOUR - SECOND, (1, 1)),
        ("hours back, across midnight", midnight, midnight - 2 * HOUR, (1, 1)),
        ("a day back", NOON.unix_millis(), NOON.unix_millis() - DAY, (1, 1)),
        ("a year back", NOON.unix_millis(), NOON.unix_millis() - 365 * DAY, (1, 1)),
        ("back from the end of time", i64::MAX, NOON.unix_millis(), (1, 1)),
        ("back to the beginning of time", NOON.unix_millis(), i64::MIN, (1, 1)),
    ];
    for (what, first, second, (minute, day)) in table {
        let mut state = state(i64::MAX, 0, 0);
        for _ in 0..3 {
            apply(&mut state, Debit::Charge(Credits::ZERO), Timestamp::from_unix_millis(first)).unwrap();
        }
        let rate = apply(&mut state, Debit::Charge(Credits::ZERO), Timestamp::from_unix_millis(second)).unwrap();
        assert_eq!((rate.minute.count, rate.day.count), (minute, day), "{what}");
    }
}

/// A clock far ahead costs an account only the requests accepted at that reading.
#[test]
fn one_wrong_clock_reading_does_not_block_an_account() {
    let mut state = state(i64::MAX, 2, 10);
    let ahead = NOON.saturating_add(std::time::Duration::from_secs(40 * 86_400));
    let mut charge = |now| apply(&mut state, Debit::Charge(Credits::BASE_CALL), now).is_ok();
    assert_eq!([charge(ahead), charge(ahead), charge(ahead)], [true, true, false]);
    assert_eq!([charge(NOON), charge(NOON), charge(NOON)], [true, true, false], "its own minute");
    let mut later = NOON;
    for _ in 0..8 {
        later = later.saturating_add(std::time::Duration::from_secs(60));
        assert!(charge(later), "{later}");
    }
    assert!(!charge(later.saturating_add(std::time::Duration::from_secs(60))), "the daily limit still applies");
}

#[test]
fn account_without_credits_uses_no_rate_limit() {
    let mut state = state(0, 1, 1);
    for _ in 0..3 {
        let refusal = apply(&mut state, Debit::Charge(Credits::BASE_CALL), NOON).unwrap_err();
        assert!(matches!(refusal, Refusal::InsufficientCredits { .. }));
    }
    assert_eq!(state.minute.count, 0);
}

#[test]
fn windows_report_remaining_requests_and_reset() {
    let mut state = state(i64::MAX, 240, 0);
    let now = Timestamp::from_unix_millis(NOON.unix_millis() + 20_001);
    let rate = apply(&mut state, Debit::Charge(Credits::BASE_CALL), now).unwrap();
    assert_eq!(rate.remaining(LimitWindow::Minute), Some(239));
    assert_eq!(rate.remaining(LimitWindow::Day), None);
    assert_eq!(rate.reset_seconds(LimitWindow::Minute), 40);
    assert_eq!(rate.reset_seconds(LimitWindow::Day), 43_200 - 20);
}

#[test]
fn refund_restores_money_but_not_the_request_count() {
    let mut state = state(5_000_000, 0, 0);
    apply(&mut state, Debit::Charge(Credits::BASE_CALL), NOON).unwrap();
    assert!(apply_refund(&mut state, Credits::BASE_CALL));
    assert_eq!(state.totals.balance.atoms(), 5_000_000);
    assert_eq!(state.totals.used, Credits::ZERO);
    assert_eq!(state.minute.count, 1);
    state.totals.balance = Credits::MAX;
    let full = state;
    assert!(!apply_refund(&mut state, Credits::BASE_CALL));
    assert_eq!(state, full);
}

proptest! {
    #[test]
    fn balance_is_always_credits_minus_debits(
        start in 0_i64..50_000_000, prices in prop::collection::vec(0_i64..10_000_000, 0..60)
    ) {
        let mut state = state(start, 40, 0);
        for price in prices {
            let before = state;
            match apply(&mut state, Debit::Charge(Credits::from_atoms(price)), NOON) {
                Ok(_) => prop_assert!(before.totals.balance.is_positive()),
                Err(_) => prop_assert_eq!(before, state),
            }
            let totals = state.totals;
            prop_assert_eq!(totals.balance.atoms(), totals.granted.atoms() - totals.used.atoms());
            prop_assert!(totals.balance.atoms() > -10_000_000);
        }
    }
}

proptest! {
    /// Whatever the clock does between batches, counting a batch's requests afterwards yields the same windows.
    #[test]
    fn requests_counted_afterwards_fall_in_the_same_windows(
        batches in prop::collection::vec((-3 * 86_400_000_i64..3 * 86_400_000, 1_u64..5), 0..12),
        near in prop::collection::vec((-200_000_i64..200_000, 1_u64..5), 0..12)
    ) {
        let (mut charged, mut counted) = (state(i64::MAX, 0, 0), state(i64::MAX, 0, 0));
        for (offset, calls) in batches.into_iter().chain(near) {
            let now = Timestamp::from_unix_millis(NOON.unix_millis() + offset);
            for _ in 0..calls {
                prop_assert!(apply(&mut charged, Debit::Charge(Credits::ZERO), now).is_ok());
            }
            // Counted in sequence, like the lines of one batch.
            counted.count_accepted(calls - 1, now);
            counted.count_accepted(1, now);
            prop_assert_eq!((charged.minute, charged.day), (counted.minute, counted.day));
        }
    }
}

#[test]
fn a_hold_must_be_covered_in_full_and_is_not_used() {
    // balance, used and held before, amount, whether it is held
    let table = [
        (100, 0, 0, 100, true),
        (100, 0, 0, 101, false),
        (1, 0, 0, 0, true),
        (0, 0, 0, 0, false),
        (-1, 0, 0, 0, false),
        (100, i64::MAX - 100, 0, 100, true),
        (100, i64::MAX - 100, 1, 100, false),
        (100, 0, i64::MAX - 100, 100, true),
        (100, 0, i64::MAX - 99, 100, false),
        (i64::MAX, 0, 0, i64::MAX, true),
    ];
    for (balance, used, held, amount, is_held) in table {
        let mut state = state(balance, 5, 5);
        (state.totals.used, state.totals.held) = (Credits::from_atoms(used), Credits::from_atoms(held));
        let before = state;
        match apply(&mut state, Debit::Hold(Credits::from_atoms(amount)), NOON) {
            Ok(rate) => {
                assert!(is_held, "{amount} of {balance}");
                assert_eq!((rate.minute.count, state.day.count), (1, 1));
                let Totals { balance: after, used: same, held: more, .. } = state.totals;
                assert_eq!((after.atoms(), same.atoms(), more.atoms()), (balance - amount, used, held + amount));
            }
            Err(Refusal::InsufficientCredits { required, .. }) => {
                assert_eq!((is_held, required.atoms()), (false, amount), "{amount} of {balance}");
                assert_eq!(state, before);
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

proptest! {
    /// Whatever happens between them, every open hold can be captured and released, and the books balance.
    #[test]
    fn every_hold_can_be_settled(
        balance in prop_oneof![1..1_000_i64, i64::MAX - 1_000..=i64::MAX],
        steps in proptest::collection::vec((0..4_u8, prop_oneof![0..500_i64, i64::MAX - 500..=i64::MAX], any::<bool>()), 0..24),
    ) {
        let mut state = state(balance, 0, 0);
        let (mut open, mut charged) = (Vec::new(), Vec::new());
        for (step, atoms, release) in steps {
            let amount = Credits::from_atoms(atoms);
            match step {
                0 if apply(&mut state, Debit::Hold(amount), NOON).is_ok() => open.push(amount),
                1 if apply(&mut state, Debit::Charge(amount), NOON).is_ok() => charged.push(amount),
                2 => {
                    if let Some(held) = open.pop() {
                        // Sometimes far above the hold: then only the hold is captured.
                        if !apply_settled(&mut state, held, amount) {
                            prop_assert!(amount > held);
                            prop_assert!(apply_settled(&mut state, held, held));
                        }
                    }
                }
                _ => {
                    if let Some(amount) = charged.pop() {
                        let before = state;
                        if !apply_refund(&mut state, amount) {
                            prop_assert_eq!(state, before);
                        }
                    }
                }
            }
            let held: i128 = open.iter().map(|held| i128::from(held.atoms())).sum();
            prop_assert_eq!(i128::from(state.totals.held.atoms()), held);
            let totals = state.totals;
            let sum = [totals.balance, totals.used, totals.held].map(|part| i128::from(part.atoms())).iter().sum::<i128>();
            prop_assert_eq!(sum, i128::from(balance));
            let mut settled = state;
            for held in &open {
                let captured = if release { Credits::ZERO } else { *held };
                prop_assert!(apply_settled(&mut settled, *held, captured), "{settled:?}");
            }
            prop_assert_eq!(settled.totals.held, Credits::ZERO);
        }
    }
}

#[test]
fn a_free_allowance_needs_no_balance_and_counts_towards_the_limits() {
    for balance in [-5, 0, 5] {
        let before = state(balance, 2, 0);
        let mut after = before;
        let rate = apply(&mut after, Debit::Nothing, NOON).unwrap();
        assert_eq!((after.totals, rate.minute.count), (before.totals, 1), "{balance}");
        apply(&mut after, Debit::Nothing, NOON).unwrap();
        let refusal = apply(&mut after, Debit::Nothing, NOON).unwrap_err();
        assert!(matches!(refusal, Refusal::RateLimited { window: LimitWindow::Minute, .. }), "{refusal:?}");
    }
    // price, hold, by volume, amount taken
    let one = Credits::from_atoms(1);
    let table = [
        (Credits::ZERO, false, true, Debit::Nothing),
        (Credits::ZERO, true, true, Debit::Nothing),
        (Credits::ZERO, false, false, Debit::Charge(Credits::ZERO)),
        (Credits::ZERO, true, false, Debit::Hold(Credits::ZERO)),
        (one, false, true, Debit::Charge(one)),
        (one, true, true, Debit::Hold(one)),
    ];
    for (price, is_hold, is_by_volume, taking) in table {
        assert_eq!(Debit::of(price, is_hold, is_by_volume), taking, "{price} {is_hold} {is_by_volume}");
    }
}

#[test]
fn a_backed_hold_needs_no_balance_and_counts_towards_the_limits() {
    for balance in [-3, 0, 3, 9] {
        let mut state = state(balance, 1, 5);
        let rate = apply(&mut state, Debit::Backed(Credits::from_atoms(7)), NOON).unwrap();
        let Totals { balance: after, held, used, .. } = state.totals;
        assert_eq!((after.atoms(), held.atoms(), used.atoms()), (balance - 7, 7, 0));
        assert_eq!(rate.minute.count, 1);
        let before = state;
        let refused = apply(&mut state, Debit::Backed(Credits::from_atoms(7)), NOON);
        assert!(matches!(refused, Err(Refusal::RateLimited { .. })), "{refused:?}");
        assert_eq!(state, before);
        assert!(apply_settled(&mut state, Credits::from_atoms(7), Credits::from_atoms(2)));
        assert_eq!((state.totals.balance.atoms(), state.totals.held.atoms()), (balance - 2, 0));
    }
}
