//! Fixtures for the contracts about events: webhooks, and which events an account got.

use std::time::Duration;

use metering_core::access::AccountId;
use metering_core::clock::Timestamp;
use metering_core::events::{
    AttemptOutcome, Delivery, DeliveryFilter, DeliveryId, DueDelivery, Event, EventKind, NewWebhook, Webhook,
    WebhookId, WebhookOwner, WebhookSecret, WebhookTerms, WebhookUrl,
};
use metering_core::money::{AlertLevel, BalanceAlert, Credits};
use metering_core::random::SystemRandomness;
use metering_core::store::{EventStore, Store, WebhookCreated};

use super::scene::{Customer, NOON, account, atoms, charge, commit, customer};

/// For how long a claim of a delivery lasts.
pub(super) const LEASE: Duration = Duration::from_secs(60);
/// More items than any contract makes.
pub(super) const MANY: u32 = 1_000;

/// So many seconds after noon.
pub(super) fn at(seconds: u64) -> Timestamp {
    NOON.saturating_add(Duration::from_secs(seconds))
}

/// The events of an account, in the order in which they happened.
pub(super) async fn events(store: &dyn EventStore, account: &AccountId) -> Vec<Event> {
    let page = store.events(account, None, MANY).await.unwrap();
    assert_eq!(page.next, None, "there is no next page");
    let mut events = page.items;
    events.reverse();
    assert!(events.is_sorted_by(|a, b| a.number < b.number), "numbers increase: {events:?}");
    assert!(events.iter().all(|event| event.account.as_ref() == Some(account)), "{events:?}");
    events
}

/// The events of an account without the first one, which is of its first key.
pub(super) async fn later_events(store: &dyn EventStore, account: &AccountId) -> Vec<Event> {
    let mut events = events(store, account).await;
    assert_eq!(events.remove(0).kind, EventKind::KeyCreated, "every account has a first key");
    events
}

/// The kinds of events that an account got after its creation.
pub(super) async fn reported(store: &dyn EventStore, account: &AccountId) -> Vec<EventKind> {
    later_events(store, account).await.iter().map(|event| event.kind).collect()
}

/// The data of the newest event of an account.
pub(super) async fn newest(store: &dyn EventStore, account: &AccountId) -> String {
    let mut newest = store.events(account, None, 1).await.unwrap().items;
    newest.pop().expect("the account has an event").data
}

/// Sets an account's threshold in atoms, and expects success.
pub(super) async fn set_threshold(store: &dyn EventStore, id: &AccountId, threshold: i64) {
    let after = store.set_balance_alert(id, Some(atoms(threshold))).await.unwrap().expect("the account exists");
    assert_eq!(after.alert.threshold, Some(atoms(threshold)));
}

/// A customer with a balance and a threshold, in atoms.
pub(super) async fn watched(store: &dyn EventStore, balance: i64, threshold: i64) -> Customer {
    let customer = customer(store, balance).await;
    set_threshold(store, &customer.id, threshold).await;
    customer
}

/// The level of an account's alert.
pub(super) async fn raised(store: &dyn Store, id: &AccountId) -> AlertLevel {
    let BalanceAlert { raised, .. } = account(store, id).await.alert;
    raised
}

/// Charges one request after the other, each in its own batch, whether it is accepted or not.
pub(super) async fn charge_each(store: &dyn Store, customer: &Customer, prices: &[i64]) {
    for price in prices {
        commit(store, vec![charge(customer.key, *price)], NOON).await;
    }
}

/// The contents of an alert about a balance.
pub(super) fn low(account: &AccountId, balance: i64, threshold: i64) -> String {
    format!(r#"{{"org_id":"{account}","balance":{},"threshold":{}}}"#, atoms(balance), atoms(threshold))
}

/// The contents of an alert about a balance that is used up.
pub(super) fn exhausted(account: &AccountId, balance: i64, required: Option<Credits>) -> String {
    let required = required.map_or_else(String::new, |required| format!(r#","required":{required}"#));
    format!(r#"{{"org_id":"{account}","balance":{}{required}}}"#, atoms(balance))
}

/// Terms of a webhook for events of these kinds; all kinds if there are none.
pub(super) fn terms(kinds: &[EventKind]) -> WebhookTerms {
    let url = WebhookUrl::parse("https://example.com/hooks?token=größe", &Default::default()).unwrap();
    WebhookTerms { url, kinds: kinds.iter().copied().collect() }
}

pub(super) fn new_secret() -> WebhookSecret {
    WebhookSecret::generate(&SystemRandomness)
}

/// A webhook to create, for events of these kinds.
pub(super) fn new_webhook(account: &AccountId, kinds: &[EventKind]) -> NewWebhook {
    NewWebhook {
        id: WebhookId::generate(&SystemRandomness),
        account: account.clone(),
        terms: terms(kinds),
        secret: new_secret(),
        max_webhooks: MANY,
        created_at: NOON,
    }
}

/// Creates a webhook and expects success.
pub(super) async fn hook(store: &dyn EventStore, account: &AccountId, kinds: &[EventKind]) -> Webhook {
    match store.create_webhook(new_webhook(account, kinds)).await.unwrap() {
        WebhookCreated::Webhook(webhook) => webhook,
        refusal => panic!("the webhook was not created: {refusal:?}"),
    }
}

/// Sets the operator's webhook, for events of these kinds.
pub(super) async fn operator_hook(store: &dyn EventStore, kinds: &[EventKind]) {
    store.set_operator_webhook(Some(terms(kinds)), NOON).await.unwrap();
}

/// Writes `count` events of an account to a webhook: tests, which need nothing else to happen.
pub(super) async fn send_tests(store: &dyn EventStore, webhook: &Webhook, count: usize) -> Vec<Delivery> {
    let mut written = Vec::new();
    for _ in 0..count {
        let test = store.test_webhook(webhook.account.as_ref(), &webhook.id, NOON).await.unwrap();
        written.push(test.expect("the webhook exists"));
    }
    written
}

/// The deliveries to the webhooks of an account; with `None`, all. In the order in which they were written.
pub(super) async fn deliveries(store: &dyn EventStore, account: Option<&AccountId>) -> Vec<Delivery> {
    let page = store.deliveries(account, DeliveryFilter::default(), None, MANY).await.unwrap();
    assert_eq!(page.next, None, "there is no next page");
    page.items.into_iter().rev().collect()
}

/// A delivery that must exist.
pub(super) async fn delivery(store: &dyn EventStore, id: DeliveryId) -> Delivery {
    let found = deliveries(store, None).await.into_iter().find(|delivery| delivery.id == id);
    found.expect("the delivery exists")
}

/// Claims the due deliveries, including the operator's.
pub(super) async fn claim(store: &dyn EventStore, now: Timestamp) -> Vec<DueDelivery> {
    let mut due = store.claim_deliveries(now, LEASE, MANY, WebhookOwner::Customers).await.unwrap();
    due.extend(store.claim_deliveries(now, LEASE, MANY, WebhookOwner::Operator).await.unwrap());
    due
}

/// Claims the due deliveries, and expects one.
pub(super) async fn claim_one(store: &dyn EventStore, now: Timestamp) -> DueDelivery {
    let mut due = claim(store, now).await;
    assert_eq!(due.len(), 1, "one delivery is due: {due:?}");
    due.remove(0)
}

pub(super) fn delivered() -> AttemptOutcome {
    AttemptOutcome::Delivered { status: 204 }
}

pub(super) fn failed(status: Option<u16>) -> AttemptOutcome {
    let response = status.map(|_| "voll — 满".to_owned());
    AttemptOutcome::Failed { status, error: "größer — “x”".to_owned(), retry_after: None, response }
}

/// Ends the attempt of a claimed delivery.
pub(super) async fn finish(
    store: &dyn EventStore,
    due: &DueDelivery,
    outcome: AttemptOutcome,
    now: Timestamp,
) -> Option<Delivery> {
    let Delivery { id, progress, .. } = &due.delivery;
    store.finish_delivery(*id, progress.attempts, outcome, now).await.unwrap()
}
