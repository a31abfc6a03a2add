//! Fixtures for the contracts: accounts with credits, charges with their keys, and a fixed time.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{Account, AccountId, ApiKey, EmailStatus, KeyHash, RateLimits, Totals};
use metering_core::charging::{Outcome, Posting, Refund};
use metering_core::clock::{Day, Timestamp};
use metering_core::money::{Credits, LedgerKind, NewLedgerEntry};
use metering_core::random::SystemRandomness;
use metering_core::store::{Created, Cursor, NewAccount, Page, Posted, Store, StoreError, Verification};
use metering_core::usage::{ClientSource, DailyTotal, DayRange, UsageLine, UsageReport};
use metering_core::{Charge, Decision, Receipt, Refusal, RequestId};
use tokio::task::JoinSet;

/// The store of a contract after which its books must add up: see `run_verified`.
pub(super) use std::sync::Arc as Verified;

/// 2026-11-21T12:00:00Z, the beginning of a minute.
pub(super) const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);
pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// All days.
pub(super) const ALWAYS: DayRange =
    DayRange { first: Day::from_unix_days(-1_000_000), last: Day::from_unix_days(1_000_000) };
/// The price of a base call.
pub(super) const BASE: i64 = Credits::BASE_CALL.atoms();

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

/// A new account without email, rate limits or credits.
pub(super) fn new_account() -> NewAccount {
    NewAccount {
        id: new_id(),
        agent_name: "agent".parse().unwrap(),
        email: None,
        email_status: EmailStatus::Unchecked,
        payer: None,
        limits: RateLimits::NONE,
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

/// Creates an account and expects success.
pub(super) async fn create(store: &dyn Store, new: NewAccount) -> Account {
    match store.create_account(new).await.unwrap() {
        Created::Account(account) => account,
        refusal => panic!("the account was not created: {refusal:?}"),
    }
}

/// A customer with a balance of `balance` atoms and no rate limits.
pub(super) async fn customer(store: &dyn Store, balance: i64) -> Customer {
    customer_with(store, balance, RateLimits::NONE).await
}

/// A customer with a balance of `balance` atoms and these rate limits.
pub(super) async fn customer_with(store: &dyn Store, balance: i64, limits: RateLimits) -> Customer {
    let entries = if balance == 0 { Vec::new() } else { vec![entry(LedgerKind::SignupBonus, balance)] };
    let new = NewAccount { entries, limits, ..new_account() };
    let customer = Customer { id: new.id.clone(), key: new.key };
    create(store, new).await;
    customer
}

/// Writes a ledger entry and expects success.
pub(super) async fn post(store: &dyn Store, id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Account {
    match store.post_entry(id, entry, now).await.unwrap() {
        Posted::Account(account) => account,
        refusal => panic!("the entry was not written: {refusal:?}"),
    }
}

pub(super) fn line(template: &str) -> UsageLine {
    UsageLine { route_template: template.into(), http_method: "GET".into(), source: ClientSource::Direct }
}

/// A charge of `price` atoms.
pub(super) fn charge(key: KeyHash, price: i64) -> Charge {
    Charge::of(key, atoms(price), line("/mpp/ethPrice")).with_path("/mpp/ethPrice")
}

pub(super) fn charge_on(key: KeyHash, price: i64, line: UsageLine) -> Charge {
    Charge::of(key, atoms(price), line)
}

pub(super) fn charge_named(key: KeyHash, price: i64, request_id: &str) -> Charge {
    charge(key, price).with_request_id(RequestId::parse(request_id).unwrap())
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
        other => panic!("the outcome of a charge is not a decision: {other:?}"),
    }
}

/// Commits a batch of one charge.
pub(super) async fn decide(store: &dyn Store, charge: Charge, now: Timestamp) -> Decision {
    let mut decisions = commit(store, vec![charge], now).await;
    assert_eq!(decisions.len(), 1, "one decision for one charge");
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

/// Commits one refund and returns the balance after it.
pub(super) async fn commit_refund(store: &dyn Store, refund: Refund, now: Timestamp) -> Option<Credits> {
    let mut outcomes = store.commit(vec![Posting::Refund(refund)], now).await.unwrap();
    match (outcomes.pop(), outcomes.len()) {
        (Some(Outcome::Refunded(balance)), 0) => balance,
        other => panic!("expected one outcome of one refund: {other:?}"),
    }
}

/// Runs a task for each item concurrently, each with the store, and returns their results in any order.
pub(super) async fn racing<S, I, F>(
    store: &Arc<S>,
    items: impl IntoIterator<Item = I>,
    task: impl Fn(Arc<S>, I) -> F,
) -> Vec<F::Output>
where
    S: ?Sized,
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let tasks: JoinSet<_> = items.into_iter().map(|item| task(Arc::clone(store), item)).collect();
    tasks.join_all().await
}

/// Reads a list in pages of at most `limit` items.
pub(super) async fn paged<T>(
    limit: u32,
    read: impl AsyncFn(Option<&Cursor>, u32) -> Result<Page<T>, StoreError>,
) -> Vec<T> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let Page { items, next } = read(after.as_ref(), limit).await.unwrap();
        assert!(items.len() <= limit as usize, "no page is longer than the limit");
        found.extend(items);
        match next {
            Some(next) => after = Some(next),
            None => return found,
        }
    }
}

/// Reads an account that must exist.
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

/// Reads the usage report of an account that must exist.
pub(super) async fn report(store: &dyn Store, id: &AccountId, days: DayRange) -> UsageReport {
    store.usage_report(id, days).await.unwrap().expect("the account exists")
}

/// Every daily total.
pub(super) async fn all_daily_totals(store: &dyn Store) -> Vec<DailyTotal> {
    let Page { items, next } = store.daily_totals(None, u32::MAX).await.unwrap();
    assert_eq!(next, None, "there is no next page");
    items
}

/// Expects that the store finds no discrepancy in its totals. A contract that ends with this takes a [`Verified`] instead.
pub(super) async fn assert_verified(store: &dyn Store) {
    assert_no_discrepancies(&store.verify().await.unwrap());
}

pub(super) fn assert_no_discrepancies(found: &Verification) {
    assert_eq!(found.discrepancies, [], "all totals add up");
    assert_eq!(found.restarted_budgets, [], "no clock was set back");
}
