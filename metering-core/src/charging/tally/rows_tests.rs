//! Charges and refunds of a batch, and the rows that they make.

use std::sync::Arc;

use super::{Tally, UsageKind};
use crate::access::account::{AccountId, RateLimits, Totals};
use crate::access::key::ApiKey;
use crate::access::key_id::KeyNumber;
use crate::access::key_terms::KeyTerms;
use crate::charging::charge::{Charge, Decision, MeterState, Receipt};
use crate::charging::key_meter::{KeyMeter, KeyState};
use crate::charging::posting::{Remembered, StoredResult};
use crate::charging::rate::Window;
use crate::charging::refusal::Refusal;
use crate::charging::request_id::RequestId;
use crate::clock::Timestamp;
use crate::events::event_data::EventKind;
use crate::money::alert::{AlertLevel, BalanceAlert};
use crate::money::credits::Credits;
use crate::random::SystemRandomness;
use crate::usage::{ClientSource, UsageLine};

/// Noon of a day.
const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

/// The key of every charge: an account's first.
const KEY: KeyNumber = KeyNumber::FIRST;

fn line(route: &str) -> UsageLine {
    UsageLine { route_template: route.into(), http_method: "GET".into(), source: ClientSource::Direct }
}

fn charge(price: i64, path: &str, request_id: Option<&str>) -> Charge {
    Charge::of(ApiKey::generate(&SystemRandomness).hash(), Credits::from_atoms(price), line("/a"))
        .with_path(path)
        .with_request_id(request_id.map(|id| RequestId::parse(id).unwrap()))
}

fn state(balance: i64) -> MeterState {
    let balance = Credits::from_atoms(balance);
    MeterState {
        totals: Totals { balance, granted: balance, ..Totals::default() },
        limits: RateLimits::NONE,
        alert: BalanceAlert::default(),
        minute: Window::default(),
        day: Window::default(),
    }
}

/// Loads an account and its first key.
fn load(tally: &mut Tally<u32, u32>, account: u32, balance: i64) {
    tally.load(account, AccountId::generate(&SystemRandomness), state(balance));
    let (id, terms) = ("key_0123456789abcdef0123".parse().unwrap(), Arc::new(KeyTerms::first()));
    tally.load_key(account, KEY, KeyState { id, parent: None, is_live: true, terms, meter: KeyMeter::default() });
}

fn tally(accounts: &[(u32, i64)]) -> Tally<u32, u32> {
    let mut tally = Tally::new(NOON, 0);
    for (account, balance) in accounts {
        load(&mut tally, *account, *balance);
    }
    tally
}

#[track_caller]
fn accepted(decision: Decision) -> Receipt {
    match decision {
        Decision::Accepted(receipt) => receipt,
        refused @ Decision::Refused(_) => panic!("{refused:?}"),
    }
}

#[test]
fn a_receipt_refunds_what_was_charged_once() {
    let mut tally = tally(&[(1, 100)]);
    let first = accepted(tally.charge(1, KEY, 7, charge(10, "/a", Some("id")), None));
    assert_eq!((first.charged.atoms(), first.balance.atoms(), first.repeated), (10, 90, false));
    assert_eq!((first.rate.minute.count, first.rate.day.count), (1, 1), "the receipt counts its own request");
    let again = accepted(tally.charge(1, KEY, 7, charge(10, "/a", Some("id")), None));
    assert_eq!((again.charged.atoms(), again.balance.atoms(), again.repeated), (10, 90, true));
    assert_eq!(again.into_refund(), None, "a repeated request was not charged");
    let free = accepted(tally.charge(1, KEY, 7, charge(0, "/a", None), None));
    assert_eq!(free.into_refund(), None, "there is nothing to refund");
    let refund = first.into_refund().unwrap();
    assert_eq!((refund.amount.atoms(), refund.day, &*refund.request_path), (10, NOON.day(), "/a"));
    assert_eq!(tally.refund(1, 7, &refund, None), Some(Credits::from_atoms(100)));
}

#[test]
fn a_remembered_charge_is_not_taken_again() {
    let mut tally = tally(&[(1, 100)]);
    let (charged, balance) = (Credits::from_atoms(3), Credits::from_atoms(42));
    let result = StoredResult { charged, balance, delivery: None, hold: None };
    let expires_at = NOON.saturating_add(RequestId::RETENTION);
    let remembered = Remembered { result, expires_at };
    let receipt = accepted(tally.charge(1, KEY, 7, charge(10, "/a", Some("id")), Some(remembered)));
    assert_eq!((receipt.charged.atoms(), receipt.balance.atoms(), receipt.repeated), (3, 42, true));
    let changes = tally.finish();
    assert!(changes.accounts.is_empty() && changes.usage.is_empty() && changes.results.is_empty());
}

#[test]
fn batch_writes_only_changed_rows_in_order() {
    let mut tally = tally(&[(3, 100), (1, 100), (2, 0), (4, 100)]);
    assert!(tally.is_loaded(4) && !tally.is_loaded(5));
    for account in [3, 1, 3] {
        let _ = accepted(tally.charge(account, KEY, 7, charge(10, "/a", None), None));
    }
    let refused = tally.charge(2, KEY, 7, charge(10, "/a", Some("id")), None);
    assert!(matches!(refused, Decision::Refused(Refusal::InsufficientCredits { .. })), "{refused:?}");
    // Loading an account again keeps its changes.
    tally.load(3, AccountId::generate(&SystemRandomness), state(1_000));
    let changes = tally.finish();
    let balances: Vec<_> =
        changes.accounts.iter().map(|(account, state)| (*account, state.totals.balance.atoms())).collect();
    assert_eq!(balances, [(1, 90), (2, 0), (3, 80)]);
    let events: Vec<_> = changes.events.iter().map(|(account, event)| (*account, event.data.kind())).collect();
    assert_eq!(events, [(2, EventKind::BalanceExhausted)], "its owner gets an event");
    assert_eq!(changes.alerts, [(2, AlertLevel::Exhausted)]);
    assert!(changes.results.is_empty(), "refusals are not remembered");
    let usage: Vec<_> = changes.usage.iter().map(|usage| (usage.account, usage.calls, usage.amount.atoms())).collect();
    assert_eq!(usage, [(1, 1, 10), (3, 2, 20)]);
}

#[test]
fn results_are_stored_by_account_and_request() {
    let mut tally = tally(&[(1, 100), (2, 100)]);
    for account in [2, 1] {
        let receipt = accepted(tally.charge(account, KEY, 7, charge(10, "/a", Some("same")), None));
        assert!(!receipt.repeated, "the same id in another account is another request");
    }
    let results = tally.finish().results;
    let results: Vec<_> =
        results.iter().map(|(account, id, known)| (*account, id.as_str(), known.result.balance.atoms())).collect();
    assert_eq!(results, [(1, "same", 90), (2, "same", 90)]);
}

#[test]
fn usage_and_refunds_are_kept_apart_per_line() {
    let mut tally = tally(&[(1, 1_000), (2, 1_000)]);
    let refund = accepted(tally.charge(1, KEY, 7, charge(10, "/a", None), None)).into_refund().unwrap();
    let _ = accepted(tally.charge(1, KEY, 7, charge(30, "/a", None), None));
    let _ = accepted(tally.charge(1, KEY, 8, charge(5, "/a", None), None));
    let _ = accepted(tally.charge(2, KEY, 7, charge(7, "/a", None), None));
    let _ = tally.refund(1, 7, &refund, None).unwrap();
    let changes = tally.finish();
    let kinds: Vec<_> =
        changes.usage.iter().map(|usage| (usage.kind, usage.added_calls(), usage.added_credits().atoms())).collect();
    let (taken, back) = (UsageKind::Charged, UsageKind::Refunded);
    assert_eq!(kinds, [(taken, 2, 40), (back, 0, -10), (taken, 1, 5), (taken, 1, 7)]);
}

#[test]
fn path_is_stored_if_all_requests_share_it() {
    // paths of the requests of one line, the path kept
    let table: [(&[&str], Option<&str>); 4] =
        [(&["/a"], Some("/a")), (&["/a", "/a"], Some("/a")), (&["/a", "/b"], None), (&["/a", "/b", "/a"], None)];
    for (paths, kept) in table {
        let mut tally = tally(&[(1, 100)]);
        for path in paths {
            let _ = accepted(tally.charge(1, KEY, 7, charge(1, path, None), None));
        }
        assert_eq!(tally.finish().usage[0].request_path.as_deref(), kept, "{paths:?}");
    }
}

#[test]
fn a_refund_that_no_account_can_hold_changes_nothing() {
    let mut tally = tally(&[(1, 100)]);
    let refund = accepted(tally.charge(1, KEY, 7, charge(10, "/a", None), None)).into_refund().unwrap();
    let mut full = Tally::new(NOON, 0);
    load(&mut full, 1, i64::MAX);
    assert_eq!(full.refund(1, 7, &refund, None), None);
    assert!(full.finish().accounts.is_empty());
}
