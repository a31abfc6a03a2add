//! Deliveries on several nodes: each goes to one claimer, an account's events stay in order, and all of it can be moved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metering_core::events::{
    AttemptOutcome, DeliveryFilter, DeliveryId, DeliveryState, DueDelivery, Event, WebhookChange, WebhookOwner,
    WebhookSecret,
};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::EventStore;
use metering_core::{AccountId, ApiKey, NewAccount, Store, SystemRandomness, Timestamp};
use metering_postgres::PostgresStore;
use metering_sql::transfer::Section;
use metering_tests::postgres::{Cluster, run_in};

use crate::event_heads::WRONG;
use crate::events::{atoms, post, reported, terms, webhook};
use crate::hold_scene::Scene;
use crate::lost_commits::NOON;
use crate::moved::{moved_to, records};

const LEASE: Duration = Duration::from_secs(60);

/// An account with 1,000 atoms and a threshold of 500.
async fn watched(store: &PostgresStore) -> AccountId {
    let (id, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
    let mut account = NewAccount::new(id.clone(), "agent".parse().unwrap(), key.hash(), NOON);
    account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, atoms(1_000), "Free")];
    store.create_account(account).await.unwrap();
    store.set_balance_alert(&id, Some(atoms(500))).await.unwrap().unwrap();
    id
}

/// Claims at most so many deliveries to customers, and as many to the operator.
pub(crate) async fn claim(node: &PostgresStore, now: Timestamp, limit: u32) -> Vec<DueDelivery> {
    let mut due = node.claim_deliveries(now, LEASE, limit, WebhookOwner::Customers).await.unwrap();
    due.extend(node.claim_deliveries(now, LEASE, limit, WebhookOwner::Operator).await.unwrap());
    due
}

/// The deliveries that claimers have in flight, and the last one that they delivered on each line.
#[derive(Default)]
struct Lines {
    in_flight: BTreeSet<(String, Option<AccountId>)>,
    last: BTreeMap<(String, Option<AccountId>), i64>,
    delivered: BTreeSet<DeliveryId>,
}

fn line(due: &DueDelivery) -> (String, Option<AccountId>) {
    (due.delivery.webhook.to_string(), due.delivery.event.account.clone())
}

/// Claims and delivers until so many are delivered.
async fn deliver(node: PostgresStore, lines: Arc<Mutex<Lines>>, count: usize) {
    while lines.lock().unwrap().delivered.len() < count {
        let due = claim(&node, NOON, 3).await;
        {
            let mut lines = lines.lock().unwrap();
            for due in &due {
                assert_eq!(due.delivery.progress.attempts, 1);
                assert!(lines.in_flight.insert(line(due)), "two deliveries of one line are in flight");
                let before = lines.last.insert(line(due), due.delivery.event.number);
                assert!(before.is_none_or(|before| before < due.delivery.event.number), "out of order");
                assert!(lines.delivered.insert(due.delivery.id), "delivered twice");
            }
        }
        for due in due {
            tokio::task::yield_now().await;
            lines.lock().unwrap().in_flight.remove(&line(&due));
            let outcome = AttemptOutcome::Delivered { status: 204 };
            let finished = node.finish_delivery(due.delivery.id, 1, outcome, NOON).await.unwrap().unwrap();
            assert_eq!(finished.progress.state, DeliveryState::Delivered);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_deliver_each_event_once_and_in_order() {
    const ACCOUNTS: usize = 5;
    const EVENTS: usize = 6;
    let Some(scene) = Scene::new(1_000, 6).await else { return };
    let mut accounts = Vec::new();
    for _ in 0..ACCOUNTS {
        let account = watched(&scene.other).await;
        webhook(&scene.other, &account).await;
        accounts.push(account);
    }
    scene.other.set_operator_webhook(Some(terms()), NOON).await.unwrap();
    let lines = Arc::new(Mutex::new(Lines::default()));
    // Every event goes to the account's webhook and to the operator's.
    let count = ACCOUNTS * EVENTS * 2;
    let mut tasks = Vec::new();
    for claimer in 0..6 {
        let node = if claimer % 2 == 0 { scene.node.clone() } else { scene.other.clone() };
        tasks.push(tokio::spawn(deliver(node, Arc::clone(&lines), count)));
    }
    for account in accounts.clone() {
        let node = scene.other.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..EVENTS {
                post(&node, &account, -501).await;
                post(&node, &account, 501).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(lines.lock().unwrap().last.len(), ACCOUNTS * 2);
    assert_eq!(claim(&scene.node, NOON, 9).await, []);
    for account in &accounts {
        assert_eq!(reported(&scene.other, account).await.len(), EVENTS);
    }
    let pending = DeliveryFilter { state: Some(DeliveryState::Pending), ..Default::default() };
    assert_eq!(scene.node.deliveries(None, pending, None, 9).await.unwrap().items, []);
}

/// The first batch of an expired claim goes to another node, and the late response of the first one changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_ran_out_is_taken_over() {
    let Some(scene) = Scene::new(1_000, 2).await else { return };
    let hook = webhook(&scene.other, &scene.id).await;
    scene.other.test_webhook(Some(&scene.id), &hook, NOON).await.unwrap().unwrap();
    let first = claim(&scene.node, NOON, 9).await;
    let later = NOON.saturating_add(LEASE);
    assert_eq!(claim(&scene.other, later.saturating_sub(Duration::from_millis(1)), 9).await, []);
    let second = claim(&scene.other, later, 9).await;
    assert_eq!((first.len(), second.len(), second[0].delivery.progress.attempts), (1, 1, 2));
    let id = first[0].delivery.id;
    let late = scene.node.finish_delivery(id, 1, AttemptOutcome::Gone, later).await.unwrap();
    assert_eq!(late, None);
    let outcome = AttemptOutcome::Delivered { status: 200 };
    assert!(scene.other.finish_delivery(id, 2, outcome, later).await.unwrap().is_some());
    assert_eq!(scene.node.webhooks(Some(&scene.id)).await.unwrap()[0].state.as_str(), "active");
}

/// Rows that cannot be read are put off for an hour, and are sent once they are mended.
#[tokio::test(flavor = "multi_thread")]
async fn unreadable_deliveries_do_not_stop_the_others() {
    let Some(scene) = Scene::new(1_000, 2).await else { return };
    let run = |sql: &str| run_in(&scene.url, sql);
    let mut sent = Vec::new();
    for _ in 0..6 {
        let hook = webhook(&scene.other, &scene.id).await;
        sent.push(scene.other.test_webhook(Some(&scene.id), &hook, NOON).await.unwrap().unwrap());
    }
    let id = |place: usize| sent[place].id.get();
    let whose = |place: usize| format!("id = (SELECT webhook FROM delivery WHERE id = {})", id(place));
    run("CREATE TABLE before AS SELECT * FROM webhook");
    run(&format!("UPDATE webhook SET url = 'gopher://hooks.example.com/' WHERE {}", whose(0)));
    run(&format!("UPDATE webhook SET kinds = 'key.invented' WHERE {}", whose(1)));
    run(&format!("UPDATE webhook SET secret = 'whsec_!' WHERE {}", whose(2)));
    run(&format!("UPDATE delivery SET attempts = -1 WHERE id = {}", id(3)));
    run(&format!("UPDATE event SET kind = 'key.invented' WHERE number = {}", sent[4].event.number));
    let ids = |due: &[DueDelivery]| due.iter().map(|due| due.delivery.id).collect::<Vec<_>>();
    let due = claim(&scene.node, NOON, 9).await;
    assert_eq!(ids(&due), [sent[5].id]);
    let outcome = AttemptOutcome::Delivered { status: 200 };
    scene.node.finish_delivery(sent[5].id, 1, outcome, NOON).await.unwrap().unwrap();
    run("UPDATE webhook w SET url = b.url, kinds = b.kinds, secret = b.secret FROM before b WHERE b.id = w.id; \
         UPDATE delivery SET attempts = 0 WHERE attempts = -1; UPDATE event SET kind = 'webhook.test'");
    let hour = NOON.saturating_add(Duration::from_secs(60 * 60));
    assert_eq!(claim(&scene.node, hour.saturating_sub(Duration::from_millis(1)), 9).await, []);
    let due = claim(&scene.other, hour, 9).await;
    assert_eq!(ids(&due), sent[..5].iter().map(|delivery| delivery.id).collect::<Vec<_>>());
    assert!(due.iter().all(|due| due.delivery.progress.attempts == 1), "{due:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_events_and_deliveries_are_moved_and_their_numbers_go_on() {
    let Some(scene) = Scene::new(1_000, 2).await else { return };
    let source = &scene.other;
    source.set_operator_webhook(Some(terms()), NOON).await.unwrap();
    let account = watched(source).await;
    let hooks = [webhook(source, &account).await, webhook(source, &account).await];
    let (secret, old_until) = (WebhookSecret::generate(&SystemRandomness), Some(NOON.saturating_add(LEASE)));
    source
        .change_webhook(&account, &hooks[1], WebhookChange::Rotate { secret, old_until }, NOON)
        .await
        .unwrap()
        .unwrap();
    for _ in 0..3 {
        post(source, &account, -501).await;
        post(source, &account, 501).await;
    }
    source.test_webhook(None, &metering_core::events::WebhookId::OPERATOR, NOON).await.unwrap().unwrap();
    let due = claim(source, NOON, 2).await;
    let (status, error) = (Some(500), "500 Internal Server Error".to_owned());
    let failed = AttemptOutcome::Failed { status, error, retry_after: None, response: None };
    source.finish_delivery(due[0].delivery.id, 1, failed, NOON).await.unwrap().unwrap();

    // A server was started on the target by mistake: its webhook does not make it occupied.
    let url = Cluster::shared().fresh_schema();
    let mistake = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    mistake.set_operator_webhook(Some(terms()), NOON).await.unwrap();
    let target = moved_to(&url, source).await;
    let in_target = |sql: &str| run_in(&url, sql);
    assert_eq!(in_target(WRONG), "");
    assert_eq!(
        in_target("SELECT count(*) FROM delivery WHERE is_head"),
        "4",
        "three webhooks, and the operator's test"
    );
    for (section, count) in [(Section::Webhooks, 3), (Section::Events, 6), (Section::Deliveries, 11)] {
        let found = records(&target, section, 2).await;
        assert_eq!(found, records(source, section, 100).await, "{section}");
        assert_eq!(found.len(), count, "{section}");
    }
    assert_eq!(target.webhooks(Some(&account)).await.unwrap(), source.webhooks(Some(&account)).await.unwrap());
    let newest = target.deliveries(None, DeliveryFilter::default(), None, 1).await.unwrap().items.remove(0);
    let next = target.test_webhook(Some(&account), &hooks[0], NOON).await.unwrap().unwrap();
    assert!(next.id > newest.id && next.event.number > newest.event.number, "{next:?}");
    post(&target, &account, -501).await;
    assert_eq!(reported(&target, &account).await.len(), reported(source, &account).await.len() + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_events_are_forgotten_with_their_deliveries() {
    let Some(scene) = Scene::new(1_000, 2).await else { return };
    let store = &scene.node;
    let hook = webhook(store, &scene.id).await;
    store.test_webhook(Some(&scene.id), &hook, NOON).await.unwrap().unwrap();
    let second = NOON.saturating_add(Duration::from_secs(1));
    store.test_webhook(Some(&scene.id), &hook, second).await.unwrap().unwrap();
    let end = NOON.saturating_add(Event::RETENTION);
    let before = |now: Timestamp| now.saturating_sub(Duration::from_millis(1));
    store.forget_expired(before(end)).await.unwrap();
    assert_eq!(store.deliveries(None, DeliveryFilter::default(), None, 9).await.unwrap().items.len(), 2);
    store.forget_expired(end).await.unwrap();
    let left = store.deliveries(None, DeliveryFilter::default(), None, 9).await.unwrap().items;
    assert_eq!(left.iter().map(|delivery| delivery.event.created_at).collect::<Vec<_>>(), [second]);
    assert_eq!(store.events(&scene.id, None, 9).await.unwrap().items.len(), 1);
}
