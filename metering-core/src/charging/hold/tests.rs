//! The rule that settles a hold, case by case.

use super::*;
use crate::random::SystemRandomness;
use crate::usage::ClientSource;

const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);
const LEASE: Duration = Duration::from_secs(60);

fn hold(amount: i64, fallback: i64) -> Hold {
    let (amount, fallback) = (Credits::from_atoms(amount), Credits::from_atoms(fallback));
    let terms = HoldTerms { id: HoldId::generate(&SystemRandomness), lease: LEASE, fallback };
    let line = UsageLine { route_template: "/chat".into(), http_method: "POST".into(), source: ClientSource::Direct };
    let account = "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap();
    Hold::open(terms, account, KeyNumber::FIRST, amount, (line, "/chat".into()), None, NOON)
}

#[test]
fn an_action_captures_as_the_rule_says() {
    let capture = |cost, may_exceed| HoldAction::Capture { cost: Credits::from_atoms(cost), may_exceed };
    // action, captured, reason, excess, of a hold of 100 with a fallback of 7
    let table = [
        (capture(0, false), 0, SettleReason::Report, 0),
        (capture(40, false), 40, SettleReason::Report, 0),
        (capture(100, false), 100, SettleReason::Report, 0),
        (capture(101, false), 100, SettleReason::Report, 1),
        (capture(101, true), 101, SettleReason::Report, 1),
        (capture(i64::MAX, true), i64::MAX, SettleReason::Report, i64::MAX - 100),
        (capture(-5, true), 0, SettleReason::Report, 0),
        (HoldAction::CaptureFallback, 7, SettleReason::NoReport, 0),
        (HoldAction::Release, 0, SettleReason::Release, 0),
    ];
    for (action, captured, reason, excess) in table {
        let (after, above) = hold(100, 7).after(action, NOON).unwrap();
        let captured = Credits::from_atoms(captured);
        assert_eq!(after.settled, Some(SettledHold { captured, reason, at: NOON }), "{action:?}");
        assert_eq!((above.atoms(), after.held()), (excess, Credits::ZERO), "{action:?}");
        assert_eq!(after.after(HoldAction::Release, NOON), None, "{action:?}: it is settled once");
    }
}

#[test]
fn a_hold_expires_when_its_lease_has_ended_and_not_before() {
    let hold = hold(100, 7);
    let end = NOON.saturating_add(LEASE);
    let just_before = Timestamp::from_unix_millis(end.unix_millis() - 1);
    assert_eq!(hold.after(HoldAction::Expire, just_before), None);
    let (expired, _) = hold.after(HoldAction::Expire, end).unwrap();
    let expected = SettledHold { captured: Credits::from_atoms(7), reason: SettleReason::Expiry, at: end };
    assert_eq!(expired.settled, Some(expected));

    let later = end.saturating_add(LEASE);
    let (renewed, _) = hold.after(HoldAction::Renew { until: later }, just_before).unwrap();
    assert_eq!((renewed.expires_at, renewed.held()), (later, hold.amount));
    assert_eq!(renewed.after(HoldAction::Expire, end), None);
    assert_eq!(renewed.after(HoldAction::Renew { until: end }, end), None, "a lease is never shortened");
    // A process that renews too late still keeps the hold, if no other process has settled it.
    assert!(hold.after(HoldAction::Renew { until: later }, end).is_some());
    assert_eq!(expired.after(HoldAction::Renew { until: later }, end), None);
}

#[test]
fn the_fallback_is_never_more_than_the_hold() {
    for (fallback, expected) in [(-1, 0), (0, 0), (100, 100), (101, 100)] {
        assert_eq!(hold(100, fallback).fallback.atoms(), expected, "{fallback}");
    }
}

#[test]
fn ids_are_read_as_written() {
    for bytes in [[0; 16], [0xab; 16], [0xff; 16]] {
        let id = HoldId::from_bytes(bytes);
        assert_eq!(id.to_string().parse(), Ok(id));
    }
    let digits = "0".repeat(32);
    for text in [String::new(), digits.clone(), format!("req_{}", &digits[1..]), format!("req_{}A", &digits[1..])] {
        assert_eq!(text.parse::<HoldId>(), Err(HoldIdError), "{text}");
    }
}
