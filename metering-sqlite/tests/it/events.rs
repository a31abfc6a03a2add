//! Events and deliveries on disk: one transaction with their cause, and whole lines with several handles on one file.

mod damage;
mod first_pending;
mod lines;

use std::path::Path;
use std::time::Duration;

use metering_core::events::WebhookOwner;
use metering_core::events::{
    AttemptOutcome, Delivery, DueDelivery, EventKind, NewWebhook, Webhook, WebhookId, WebhookSecret, WebhookTerms,
};
use metering_core::store::{EventStore, KeyStore, Posted, WebhookCreated};
use metering_core::{AccountId, Credits, Refusal, Store, SystemRandomness, Timestamp};
use metering_sqlite::SqliteStore;

use crate::contract::fast_folder;
use crate::scene::{NOON, account, charge, charge_of, count, created, execute, grant, new_account, post};

const LEASE: Duration = Duration::from_secs(60);

fn later(seconds: u64) -> Timestamp {
    NOON.saturating_add(Duration::from_secs(seconds))
}

fn terms() -> WebhookTerms {
    WebhookTerms { url: "https://example.com/hooks".parse().unwrap(), kinds: "".parse().unwrap() }
}

/// Creates a webhook for all kinds of events.
async fn webhook(store: &SqliteStore, account: &AccountId) -> Webhook {
    let new = NewWebhook {
        id: WebhookId::generate(&SystemRandomness),
        account: account.clone(),
        terms: terms(),
        secret: WebhookSecret::generate(&SystemRandomness),
        max_webhooks: 10,
        created_at: NOON,
    };
    match store.create_webhook(new).await.unwrap() {
        WebhookCreated::Webhook(webhook) => webhook,
        refused => panic!("{refused:?}"),
    }
}

/// Writes tests for one webhook.
async fn send(store: &SqliteStore, webhook: &Webhook, times: usize) -> Vec<Delivery> {
    let mut sent = Vec::new();
    for _ in 0..times {
        let test = store.test_webhook(webhook.account.as_ref(), &webhook.id, NOON).await.unwrap();
        sent.push(test.expect("the webhook exists"));
    }
    sent
}

async fn claim(store: &SqliteStore, now: Timestamp) -> Vec<DueDelivery> {
    claim_some(store, now, 1_000).await
}

/// Claims at most `limit` deliveries to the operator, and as many to customers.
async fn claim_some(store: &SqliteStore, now: Timestamp, limit: u32) -> Vec<DueDelivery> {
    let mut due = store.claim_deliveries(now, LEASE, limit, WebhookOwner::Operator).await.unwrap();
    due.extend(store.claim_deliveries(now, LEASE, limit, WebhookOwner::Customers).await.unwrap());
    due
}

async fn finish(store: &SqliteStore, due: &DueDelivery, now: Timestamp) -> Option<Delivery> {
    let (id, attempt) = (due.delivery.id, due.delivery.progress.attempts);
    store.finish_delivery(id, attempt, AttemptOutcome::Delivered { status: 204 }, now).await.unwrap()
}

/// The kinds of an account's events, in the order written.
async fn reported(store: &SqliteStore, account: &AccountId) -> Vec<EventKind> {
    let events = store.events(account, None, 1_000).await.unwrap().items;
    events.iter().rev().map(|event| event.kind).collect()
}

/// A trigger that refuses rows of a table, as a full disk would.
fn refuse(file: &Path, table: &str) {
    execute(file, &format!("CREATE TRIGGER refuse BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'refused'); END"));
}

/// Whether the event or a delivery cannot be written: its cause is then not written either.
#[tokio::test]
async fn a_cause_is_written_with_its_event_or_not_at_all() {
    for table in ["event", "delivery"] {
        let folder = fast_folder();
        let file = folder.path().join("metering.db");
        let store = SqliteStore::open(&file).unwrap();
        let (id, key) = account(&store, 2).await;
        let _ = webhook(&store, &id).await;
        store.set_balance_alert(&id, Some(Credits::BASE_CALL)).await.unwrap();
        assert_eq!(charge(&store, key).await, Ok(1), "it tells nothing");
        refuse(&file, table);
        let before = store.account(&id).await.unwrap();
        let last = charge_of(key, Credits::BASE_CALL);
        let postings = vec![metering_core::charging::Posting::Charge(last.clone())];
        assert!(store.commit(postings, NOON).await.is_err(), "{table}");
        let taken = metering_core::money::NewLedgerEntry { amount: grant(1).amount.checked_neg().unwrap(), ..grant(1) };
        assert!(store.post_entry(&id, taken.clone(), NOON).await.is_err(), "{table}");
        assert!(table == "delivery" || store.create_account(new_account()).await.is_err());
        assert!(store.report_leaked(&key, NOON).await.is_err(), "{table}");
        assert_eq!(store.account(&id).await.unwrap(), before, "{table}");
        assert_eq!(reported(&store, &id).await, [EventKind::KeyCreated], "{table}");
        assert_eq!(store.verify().await.unwrap().discrepancies, []);
        execute(&file, "DROP TRIGGER refuse");
        assert_eq!(post(&store, last).await.unwrap().balance, Credits::ZERO);
        assert!(matches!(store.post_entry(&id, taken, NOON).await.unwrap(), Posted::Account(_)));
        let expected = [EventKind::KeyCreated, EventKind::BalanceLow, EventKind::BalanceExhausted];
        assert_eq!((reported(&store, &id).await.as_slice(), count(&file, "delivery")), (&expected[..], 2), "{table}");
    }
}

/// Nothing about an event is read or written, so ordinary charges cost what they did before there were any.
#[tokio::test]
async fn a_charge_without_an_event_touches_no_table_of_events() {
    let (_folder, file, store) = created();
    let (_, key) = account(&store, 3).await;
    let tables = ["delivery", "webhook", "event"].map(|table| format!("ALTER TABLE {table} RENAME TO no_{table};"));
    execute(&file, &tables.concat());
    assert_eq!(charge(&store, key).await, Ok(2));
    assert_eq!(charge(&store, key).await, Ok(1));
    let last = vec![metering_core::charging::Posting::Charge(charge_of(key, Credits::BASE_CALL))];
    assert!(store.commit(last, NOON).await.is_err(), "the balance is exhausted, which makes an event");
}

/// A refusal books nothing. Other handles must still see the alert that it raised.
#[tokio::test]
async fn a_level_raised_by_a_refusal_is_told_once_by_two_handles() {
    let folder = fast_folder();
    let file = folder.path().join("metering.db");
    let (here, there) = (SqliteStore::open(&file).unwrap(), SqliteStore::open(&file).unwrap());
    let (id, key) = account(&here, 0).await;
    for store in [&here, &there] {
        // Both have the account in their caches now.
        let free = post(store, charge_of(key, Credits::ZERO)).await;
        assert!(matches!(free, Err(Refusal::InsufficientCredits { .. }) | Ok(_)), "{free:?}");
    }
    for store in [&here, &there, &here, &there] {
        assert!(matches!(charge(store, key).await, Err(Refusal::InsufficientCredits { .. })));
    }
    let exhausted = [EventKind::KeyCreated, EventKind::BalanceExhausted];
    assert_eq!(reported(&here, &id).await, exhausted);
    there.post_entry(&id, grant(1), NOON).await.unwrap();
    assert_eq!(charge(&here, key).await, Ok(0));
    assert!(matches!(charge(&there, key).await, Err(Refusal::InsufficientCredits { .. })));
    assert_eq!(reported(&here, &id).await, [&exhausted[..], &[EventKind::BalanceExhausted]].concat());
    assert_eq!(here.verify().await.unwrap().discrepancies, []);
}

/// The state of a level, a threshold and a claimed delivery after a crash.
#[tokio::test]
async fn levels_and_claims_survive_reopening() {
    let (_folder, file, store) = created();
    let (id, key) = account(&store, 5).await;
    let hook = webhook(&store, &id).await;
    store.set_balance_alert(&id, Some(grant(5).amount)).await.unwrap();
    assert_eq!(charge(&store, key).await, Ok(4));
    let alert = store.account(&id).await.unwrap().unwrap().alert;
    let due = claim(&store, NOON).await;
    drop(store);
    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(store.account(&id).await.unwrap().unwrap().alert, alert);
    assert_eq!(charge(&store, key).await, Ok(3));
    assert_eq!(reported(&store, &id).await, [EventKind::KeyCreated, EventKind::BalanceLow], "reported once");
    assert_eq!(store.webhooks(Some(&id)).await.unwrap(), [hook]);
    assert_eq!(claim(&store, later(59)).await, [], "claimed before the restart");
    let again = claim(&store, later(60)).await;
    assert_eq!((again.len(), again[0].delivery.id), (1, due[0].delivery.id));
    assert_eq!(finish(&store, &due[0], later(60)).await, None, "another attempt is in progress");
    assert!(finish(&store, &again[0], later(61)).await.is_some());
}

/// Numbers are never given out twice, or two events would have one id.
#[tokio::test]
async fn forgotten_events_leave_their_numbers() {
    let (_folder, file, store) = created();
    let (id, _) = account(&store, 1).await;
    let hook = webhook(&store, &id).await;
    let before = send(&store, &hook, 1_200).await.pop().unwrap();
    let old = NOON.saturating_add(metering_core::events::Event::RETENTION);
    assert_eq!(store.forget_expired(old).await.unwrap(), 1_201, "in several slices");
    assert_eq!((count(&file, "event"), count(&file, "delivery")), (0, 0));
    drop(store);
    let store = SqliteStore::open(&file).unwrap();
    let after = send(&store, &hook, 1).await.pop().unwrap();
    assert_eq!((after.event.number, after.id.get()), (before.event.number + 1, before.id.get() + 1));
}
