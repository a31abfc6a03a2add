//! What contracts start from: accounts with credits, charges of their keys, and a moment for it all to happen.

use std::sync::Arc;
use std::time::Duration;

use crate::account::{Account, AccountId, RateLimits, Totals};
use crate::charge::{Charge, Decision, Receipt, Refund, Refusal, RequestId};
use crate::clock::{Day, Timestamp};
use crate::credits::Credits;
use crate::key::{ApiKey, KeyHash};
use crate::ledger::{LedgerKind, NewLedgerEntry};
use crate::random::SystemRandomness;
use crate::store::{Created, NewAccount, Page, Posted, Store};
use crate::tally::{Outcome, Posting};
use crate::usage::{ClientSource, DailyTotal, DayRange, UsageLine, UsageReport};

/// 2026-11-21T12:00:00Z, the beginning of a minute.
pub(super) const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);
pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Every day there is.
pub(super) const ALWAYS: DayRange =
    DayRange { first: Day::from_unix_days(-1_000_000), last: Day::from_unix_days(1_000_000) };
/// The price of a base call.
pub(super) const BASE: i64 = Credits::BASE_CALL.atoms();
pub(super) const UNCAPPED: RateLimits = RateLimits { requests_per_minute: 0, requests_per_day: 0 };

/// An account and its live key.
#[derive(Debug, Clone)]
pub(super) struct Customer {
    pub(super) id: AccountId,
    pub(super) key: KeyHash,
}

pub(super) const fn atoms(atoms: i64) -> Credits {
    Credits::from_atoms(atoms)
}

pub(super) fn new_id() -> AccountId {
    AccountId::generate(&SystemRandomness)
}

pub(super) fn new_key() -> KeyHash {
    ApiKey::generate(&SystemRandomness).hash()
}

/// An account to be made, with no email, no caps and no credits.
pub(super) fn newcomer() -> NewAccount {
    NewAccount {
        id: new_id(),
        agent_name: "agent".parse().unwrap(),
        email: None,
        payer: None,
        limits: UNCAPPED,
        key: new_key(),
        entries: Vec::new(),
        created_at: NOON,
    }
}

pub(super) fn entry(kind: LedgerKind, amount: i64) -> NewLedgerEntry {
    NewLedgerEntry::new(kind, atoms(amount), format!("{} of {amount} atoms", kind.as_str()))
}

pub(super) fn adjustment(amount: i64) -> NewLedgerEntry {
    entry(LedgerKind::Adjustment, amount)
}

/// Makes an account and expects it to be made.
pub(super) async fn create(store: &dyn Store, new: NewAccount) -> Account {
    match store.create_account(new).await.unwrap() {
        Created::Account(account) => account,
        refusal => panic!("the account was not made: {refusal:?}"),
    }
}

/// A customer with so many atoms and no caps.
pub(super) async fn customer(store: &dyn Store, balance: i64) -> Customer {
    customer_with(store, balance, UNCAPPED).await
}

/// A customer with so many atoms and these caps.
pub(super) async fn customer_with(store: &dyn Store, balance: i64, limits: RateLimits) -> Customer {
    let entries = if balance == 0 { Vec::new() } else { vec![entry(LedgerKind::SignupBonus, balance)] };
    let new = NewAccount { entries, limits, ..newcomer() };
    let customer = Customer { id: new.id.clone(), key: new.key };
    create(store, new).await;
    customer
}

/// Writes a ledger entry and expects it to be written.
pub(super) async fn post(store: &dyn Store, id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Account {
    match store.post_entry(id, entry, now).await.unwrap() {
        Posted::Account(account) => account,
        refusal => panic!("the entry was not written: {refusal:?}"),
    }
}

pub(super) fn line(template: &str) -> UsageLine {
    UsageLine { route_template: template.into(), http_method: "GET".into(), source: ClientSource::Direct }
}

/// A charge of so many atoms, on a route of its own path.
pub(super) fn charge(key: KeyHash, price: i64) -> Charge {
    Charge {
        key,
        price: atoms(price),
        line: line("/mpp/ethPrice"),
        request_path: "/mpp/ethPrice".into(),
        request_id: None,
        delivery: None,
    }
}

pub(super) fn charge_on(key: KeyHash, price: i64, line: UsageLine) -> Charge {
    let request_path = Arc::clone(&line.route_template);
    Charge { line, request_path, ..charge(key, price) }
}

pub(super) fn charge_named(key: KeyHash, price: i64, request_id: &str) -> Charge {
    Charge { request_id: Some(RequestId::parse(request_id).unwrap()), ..charge(key, price) }
}

/// Commits charges in one batch.
pub(super) async fn commit(store: &dyn Store, charges: Vec<Charge>, now: Timestamp) -> Vec<Decision> {
    let postings = charges.into_iter().map(Posting::Charge).collect();
    let outcomes = store.commit(postings, now).await.unwrap();
    outcomes.into_iter().map(decision).collect()
}

pub(super) fn decision(outcome: Outcome) -> Decision {
    match outcome {
        Outcome::Decided(decision) => decision,
        other => panic!("a charge was answered as something else: {other:?}"),
    }
}

/// Commits one charge on its own.
pub(super) async fn decide(store: &dyn Store, charge: Charge, now: Timestamp) -> Decision {
    let mut decisions = commit(store, vec![charge], now).await;
    assert_eq!(decisions.len(), 1, "one answer for one charge");
    decisions.remove(0)
}

/// Commits one charge and expects it to be accepted.
pub(super) async fn accepted(store: &dyn Store, charge: Charge, now: Timestamp) -> Receipt {
    match decide(store, charge, now).await {
        Decision::Accepted(receipt) => receipt,
        Decision::Refused(refusal) => panic!("the charge was refused: {refusal:?}"),
    }
}

/// Commits one charge and expects it to be refused.
pub(super) async fn refused(store: &dyn Store, charge: Charge, now: Timestamp) -> Refusal {
    match decide(store, charge, now).await {
        Decision::Accepted(receipt) => panic!("the charge was accepted: {receipt:?}"),
        Decision::Refused(refusal) => refusal,
    }
}

/// Commits one refund, and returns the balance after it.
pub(super) async fn pay_back(store: &dyn Store, refund: Refund, now: Timestamp) -> Option<Credits> {
    let mut outcomes = store.commit(vec![Posting::Refund(refund)], now).await.unwrap();
    match (outcomes.pop(), outcomes.len()) {
        (Some(Outcome::Refunded(balance)), 0) => balance,
        other => panic!("not one answer to one refund: {other:?}"),
    }
}

/// An account that is expected to exist.
pub(super) async fn account(store: &dyn Store, id: &AccountId) -> Account {
    store.account(id).await.unwrap().expect("the account exists")
}

pub(super) async fn totals(store: &dyn Store, id: &AccountId) -> Totals {
    account(store, id).await.totals
}

/// The balance in atoms.
pub(super) async fn balance(store: &dyn Store, id: &AccountId) -> i64 {
    totals(store, id).await.balance.atoms()
}

/// The report of an account that is expected to exist.
pub(super) async fn report(store: &dyn Store, id: &AccountId, days: DayRange) -> UsageReport {
    store.usage_report(id, days).await.unwrap().expect("the account exists")
}

/// Every daily total.
pub(super) async fn all_daily_totals(store: &dyn Store) -> Vec<DailyTotal> {
    let Page { items, next } = store.daily_totals(None, u32::MAX).await.unwrap();
    assert_eq!(next, None, "nothing follows all");
    items
}

/// Expects that all money adds up.
pub(super) async fn assert_verified(store: &dyn Store) {
    let verification = store.verify().await.unwrap();
    assert_eq!(verification.discrepancies, [], "all money adds up");
}
