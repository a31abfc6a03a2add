//! The changes of a batch.

use super::*;
use crate::access::account::{RateLimits, Totals};
use crate::access::budget::Budget;
use crate::access::key::KeyHash;
use crate::access::key_id::KeyId;
use crate::access::key_terms::KeyTerms;
use crate::charging::hold::HoldTerms;
use crate::charging::key_meter::{KeyMeter, KeyState};
use crate::charging::rate::Window;
use crate::money::alert::BalanceAlert;
use crate::usage::{ClientSource, UsageLine};

const TODAY: Day = Day::from_unix_days(20_000);

fn change(account: u8, line: &'static str, kind: UsageKind, calls: u64, atoms: i64) -> UsageChange<u8, &'static str> {
    let amount = Credits::from_atoms(atoms);
    UsageChange { account, day: TODAY, line, key: KeyNumber::FIRST, kind, calls, amount, request_path: None }
}

#[test]
fn refunds_take_credits_back_and_keep_the_calls() {
    let net = |kind| {
        let change = change(1, "/a", kind, 3, 30);
        (change.added_calls(), change.added_credits().atoms())
    };
    assert_eq!((net(UsageKind::Charged), net(UsageKind::Refunded)), ((3, 30), (0, -30)));
}

#[test]
fn batch_is_empty_only_if_nothing_is_to_be_written() {
    let nothing = || Changes::<u8, &str> {
        accounts: Vec::new(),
        keys: Vec::new(),
        usage: Vec::new(),
        volumes: Vec::new(),
        tokens: Vec::new(),
        results: Vec::new(),
        holds: Vec::new(),
        alerts: Vec::new(),
        events: Vec::new(),
    };
    assert!(nothing().is_empty());
    let usage = vec![change(1, "/a", UsageKind::Charged, 1, 1)];
    assert!(!Changes { usage, ..nothing() }.is_empty());
    let result = StoredResult { charged: Credits::ZERO, balance: Credits::ZERO, delivery: None, hold: None };
    let remembered = Remembered { result, expires_at: Timestamp::from_unix_millis(0) };
    let results = vec![(1, RequestId::parse("a").unwrap(), remembered)];
    assert!(!Changes { results, ..nothing() }.is_empty());
}

/// A tally with an account of 1000 atoms, and a chain of keys with these budgets, from the first key down.
fn tally(budgets: &[Option<i64>]) -> Tally<u8, &'static str> {
    let mut tally = Tally::new(TODAY.start(), 0);
    let balance = Credits::from_atoms(1_000);
    let totals = Totals { balance, granted: balance, ..Totals::default() };
    let (limits, alert, window) = (RateLimits::NONE, BalanceAlert::default(), Window::default());
    tally.load(
        1,
        "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap(),
        MeterState { totals, limits, alert, minute: window, day: window },
    );
    let last = u32::try_from(budgets.len()).unwrap() - 1;
    while let Some(number) = tally.missing_key(1, KeyNumber::new(last)) {
        let limit = budgets[usize::try_from(number.get()).unwrap()];
        let budget = limit.map(|limit| Budget { limit: Credits::from_atoms(limit), reset: None });
        let terms = Arc::new(KeyTerms { budget, ..KeyTerms::first() });
        let parent = number.get().checked_sub(1).map(KeyNumber::new);
        tally.load_key(1, number, KeyState { id: key_id(), parent, is_live: true, terms, meter: KeyMeter::default() });
    }
    tally
}

fn key_id() -> KeyId {
    "key_0123456789abcdef0123".parse().unwrap()
}

fn request(atoms: i64) -> Charge {
    let line = UsageLine { route_template: "/a".into(), http_method: "GET".into(), source: ClientSource::Direct };
    Charge::of(KeyHash::from_bytes([1; 32]), Credits::from_atoms(atoms), line)
}

#[test]
fn keys_are_loaded_from_the_one_that_is_used_up_to_the_first() {
    let mut tally = Tally::<u8, &str>::new(TODAY.start(), 0);
    let mut asked = Vec::new();
    while let Some(number) = tally.missing_key(1, KeyNumber::new(3)) {
        asked.push(number.get());
        let parent = number.get().checked_sub(1).map(KeyNumber::new);
        let terms = Arc::new(KeyTerms::first());
        tally.load_key(1, number, KeyState { id: key_id(), parent, is_live: true, terms, meter: KeyMeter::default() });
    }
    assert_eq!(asked, [3, 2, 1, 0]);
    assert_eq!(tally.missing_key(1, KeyNumber::new(2)), None);
    assert_eq!(tally.missing_key(2, KeyNumber::new(2)), Some(KeyNumber::new(2)), "another account");
}

#[test]
fn only_counted_keys_are_written_and_a_refused_charge_counts_for_none() {
    let mut tally = tally(&[Some(10), None, Some(8)]);
    let mut take = |number, atoms| {
        let decision = tally.charge(1, KeyNumber::new(number), "/a", request(atoms), None);
        matches!(decision, Decision::Accepted(_))
    };
    // 8 for the last key, 10 for the first, and no limit for the key between them.
    assert_eq!([take(2, 5), take(2, 4), take(1, 6), take(1, 5), take(2, 1)], [true, false, false, true, false]);
    let changes = tally.finish();
    let spent: Vec<_> =
        changes.keys.iter().map(|(_, number, meter)| (number.get(), meter.spent.amount.atoms())).collect();
    assert_eq!(spent, [(0, 10), (2, 5)]);
    assert_eq!(changes.accounts[0].1.totals.used.atoms(), 10);
    let usage: Vec<_> = changes.usage.iter().map(|usage| (usage.key.get(), usage.amount.atoms())).collect();
    assert_eq!(usage, [(1, 5), (2, 5)]);
}

#[test]
fn a_refund_makes_room_in_every_budget_of_its_batch() {
    let mut tally = tally(&[Some(10), Some(10)]);
    let key = KeyNumber::new(1);
    let Decision::Accepted(receipt) = tally.charge(1, key, "/a", request(10), None) else { panic!("it is covered") };
    let full = tally.charge(1, key, "/a", request(1), None);
    assert!(matches!(full, Decision::Refused(Refusal::KeyBudget { .. })), "{full:?}");
    tally.refund(1, "/a", &receipt.into_refund().unwrap(), None).unwrap();
    let again = tally.charge(1, key, "/a", request(10), None);
    assert!(matches!(again, Decision::Accepted(_)), "{again:?}");
}

/// The kinds of the events of a batch.
fn reported(changes: &Changes<u8, &'static str>) -> Vec<&'static str> {
    changes.events.iter().map(|(_, event)| event.data.kind().as_str()).collect()
}

#[test]
fn a_refused_batch_writes_only_that_credits_ran_out() {
    let mut tally = tally(&[None]);
    let hold = |tally: &mut Tally<u8, &'static str>| {
        let terms =
            HoldTerms { id: HoldId::from_bytes([7; 16]), lease: std::time::Duration::ZERO, fallback: Credits::ZERO };
        tally.charge(1, KeyNumber::FIRST, "/a", request(1_001).with_hold(terms), None)
    };
    for _ in 0..2 {
        let decision = hold(&mut tally);
        assert!(matches!(decision, Decision::Refused(Refusal::InsufficientCredits { .. })), "{decision:?}");
    }
    let changes = tally.finish();
    assert!(!changes.is_empty());
    assert_eq!((reported(&changes), &changes.alerts), (vec!["balance.exhausted"], &vec![(1, AlertLevel::Short)]));
    assert_eq!((changes.accounts.len(), changes.accounts[0].1.totals.balance.atoms()), (1, 1_000));
    assert!(changes.usage.is_empty() && changes.holds.is_empty() && changes.keys.is_empty());
}

#[test]
fn keys_tell_before_their_account_and_unchanged_levels_are_not_written() {
    let mut changed = tally(&[Some(1_000)]);
    let decision = changed.charge(1, KeyNumber::FIRST, "/a", request(1_000), None);
    assert!(matches!(decision, Decision::Accepted(_)), "{decision:?}");
    let changes = changed.finish();
    assert_eq!(reported(&changes), ["budget.exhausted", "balance.exhausted"]);
    assert_eq!(changes.keys[0].2.raised, AlertLevel::Exhausted);
    let mut quiet = tally(&[Some(1_000)]);
    quiet.charge(1, KeyNumber::FIRST, "/a", request(999), None);
    let changes = quiet.finish();
    assert!(changes.alerts.is_empty() && changes.events.is_empty());
    assert_eq!(changes.keys[0].2.raised, AlertLevel::None);
}
