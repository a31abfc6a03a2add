//! Events on several nodes: each is written once, with what caused it, and ordinary charges take no longer for it.

use std::time::Duration;

use metering_core::access::{Budget, BudgetReset, KeyTerms, Scopes};
use metering_core::charging::{Outcome, Posting};
use metering_core::events::{EventKind, EventKinds, NewWebhook, WebhookId, WebhookSecret, WebhookTerms};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::{EventStore, KeyCreated, KeyStore, NewKey, WebhookCreated};
use metering_core::{AccountId, ApiKey, Charge, Credits, Decision, Store, SystemRandomness, Timestamp};
use metering_postgres::PostgresStore;

use crate::hold_scene::Scene;
use crate::lost_commits::NOON;

pub(crate) fn atoms(atoms: i64) -> Credits {
    Credits::from_atoms(atoms)
}

/// The terms of a webhook for all events.
pub(crate) fn terms() -> WebhookTerms {
    WebhookTerms { url: "https://hooks.example.com/metering".parse().unwrap(), kinds: EventKinds::default() }
}

/// Creates a webhook of an account.
pub(crate) async fn webhook(store: &PostgresStore, account: &AccountId) -> WebhookId {
    let (id, secret) = (WebhookId::generate(&SystemRandomness), WebhookSecret::generate(&SystemRandomness));
    let new = NewWebhook { id, account: account.clone(), terms: terms(), secret, max_webhooks: 10, created_at: NOON };
    let created = store.create_webhook(new).await.unwrap();
    assert!(matches!(created, WebhookCreated::Webhook(_)), "{created:?}");
    id
}

pub(crate) async fn post(store: &PostgresStore, account: &AccountId, amount: i64) {
    let entry = NewLedgerEntry::new(LedgerKind::Adjustment, atoms(amount), "Test");
    store.post_entry(account, entry, NOON).await.unwrap();
}

/// The events of an account after its creation.
pub(crate) async fn reported(store: &PostgresStore, account: &AccountId) -> Vec<EventKind> {
    let mut events = store.events(account, None, 1_000).await.unwrap().items;
    events.reverse();
    assert!(events.is_sorted_by(|a, b| a.number < b.number), "{events:?}");
    events.into_iter().map(|event| event.kind).filter(|kind| *kind != EventKind::KeyCreated).collect()
}

/// Charges once, and returns whether the charge was accepted.
async fn is_charged(store: &PostgresStore, key: &ApiKey, price: i64, now: Timestamp) -> bool {
    let charge = Charge::new(key, atoms(price), "GET", "/x");
    let outcomes = store.commit(vec![Posting::Charge(charge)], now).await.unwrap();
    matches!(outcomes[..], [Outcome::Decided(Decision::Accepted(_))])
}

/// Creates a key with a budget of so many atoms a day.
async fn budgeted(scene: &Scene, limit: i64) -> ApiKey {
    let mut terms = KeyTerms::new("budgeted".parse().unwrap(), Scopes::ALL);
    terms.budget = Some(Budget { limit: atoms(limit), reset: Some(BudgetReset::Daily) });
    let key = ApiKey::generate(&SystemRandomness);
    let account = scene.id.clone();
    let new = NewKey { account, parent: None, secret: key.hash(), terms, max_keys: 9, created_at: NOON };
    assert!(matches!(scene.other.create_key(new).await.unwrap(), KeyCreated::Key(_)));
    key
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_chargers_on_two_nodes_raise_each_alert_once() {
    let Some(scene) = Scene::new(640, 8).await else { return };
    scene.other.set_balance_alert(&scene.id, Some(atoms(300))).await.unwrap().unwrap();
    let hook = webhook(&scene.other, &scene.id).await;
    let mut tasks = Vec::new();
    for charger in 0..64 {
        let node = if charger % 2 == 0 { scene.node.clone() } else { scene.other.clone() };
        let key = scene.key.clone();
        tasks.push(tokio::spawn(async move {
            let mut accepted = 0;
            for _ in 0..12 {
                accepted += u32::from(is_charged(&node, &key, 1, NOON).await);
            }
            accepted
        }));
    }
    let mut accepted = 0;
    for task in tasks {
        accepted += task.await.unwrap();
    }
    assert_eq!(accepted, 640);
    assert_eq!(reported(&scene.other, &scene.id).await, [EventKind::BalanceLow, EventKind::BalanceExhausted]);
    let deliveries = scene.other.deliveries(Some(&scene.id), Default::default(), None, 100).await.unwrap().items;
    assert_eq!(deliveries.iter().map(|delivery| delivery.webhook).collect::<Vec<_>>(), [hook, hook]);
    let low = &deliveries[1].event.data;
    assert!(low.contains(&format!("\"balance\":{},", atoms(299))), "{low}");
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_exhausted_once_a_period_whichever_node_refuses() {
    let Some(scene) = Scene::new(1_000, 4).await else { return };
    let key = budgeted(&scene, 10).await;
    let mut expected = Vec::new();
    for day in 0..3 {
        let now = NOON.saturating_add(Duration::from_secs(day * 24 * 60 * 60));
        let (first, second) = if day == 1 { (&scene.other, &scene.node) } else { (&scene.node, &scene.other) };
        // More charges than a node that found another one at work reads before.
        for _ in 0..70 {
            assert!(is_charged(first, &scene.key, 1, now).await);
        }
        for _ in 0..8 {
            assert!(is_charged(first, &key, 1, now).await);
        }
        // Too expensive for the remaining balance.
        expected.push(EventKind::BudgetExhausted);
        assert!(!is_charged(second, &key, 5, now).await);
        assert_eq!(reported(&scene.other, &scene.id).await, expected, "day {day}");
        // The first node would decide this without reading. It must not tell again.
        assert!(!is_charged(first, &key, 5, now).await);
        assert!(is_charged(first, &key, 1, now).await);
        assert_eq!(reported(&scene.other, &scene.id).await, expected, "day {day}");
        // Nothing is left.
        expected.push(EventKind::BudgetExhausted);
        assert!(is_charged(second, &key, 1, now).await);
        assert!(!is_charged(first, &key, 1, now).await);
        let refused = (0..32).map(|place| {
            let node = if place % 2 == 0 { &scene.node } else { &scene.other };
            is_charged(node, &key, 1, now)
        });
        assert!(!futures_util::future::join_all(refused).await.into_iter().any(|accepted| accepted));
        assert_eq!(reported(&scene.other, &scene.id).await, expected, "day {day}");
    }
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_on_one_node_is_not_told_again_by_the_other() {
    let Some(scene) = Scene::new(1_000, 4).await else { return };
    for _ in 0..70 {
        assert!(is_charged(&scene.node, &scene.key, 1, NOON).await);
    }
    // A hold of more than there is. The first node still has the meter as it left it.
    for node in [&scene.other, &scene.node] {
        let mut charge = Charge::new(&scene.key, atoms(5_000), "GET", "/x");
        let lease = Duration::from_secs(30);
        charge.hold = Some(metering_core::charging::HoldTerms::new(&SystemRandomness, lease, atoms(1)));
        node.commit(vec![Posting::Charge(charge)], NOON).await.unwrap();
        assert_eq!(reported(&scene.other, &scene.id).await, [EventKind::BalanceExhausted]);
    }
    // That a request was too dear does not mute that the balance is spent.
    assert!(is_charged(&scene.node, &scene.key, 930, NOON).await);
    assert!(!is_charged(&scene.other, &scene.key, 1, NOON).await);
    assert!(!is_charged(&scene.node, &scene.key, 1, NOON).await);
    assert_eq!(reported(&scene.other, &scene.id).await, [EventKind::BalanceExhausted; 2]);
    scene.verify().await;
}

/// The number of messages, and so of round trips, that a charge of the first node takes.
async fn messages(scene: &Scene, price: i64) -> u32 {
    let before = scene.link.messages();
    assert!(is_charged(&scene.node, &scene.key, price, NOON).await);
    scene.link.messages() - before
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_and_events_take_no_round_trip() {
    let Some(scene) = Scene::new(1_000, 2).await else { return };
    scene.other.set_balance_alert(&scene.id, Some(atoms(500))).await.unwrap().unwrap();
    webhook(&scene.other, &scene.id).await;
    scene.other.set_operator_webhook(Some(terms()), NOON).await.unwrap();
    let mut least = [u32::MAX; 2];
    for round in 1..=10 {
        // An entry is a change by another node: it is noticed once, and then read for a while.
        for _ in 0..70 {
            messages(&scene, 1).await;
        }
        for _ in 0..5 {
            least[0] = least[0].min(messages(&scene, 1).await);
        }
        assert_eq!(reported(&scene.other, &scene.id).await.len(), round - 1);
        // The crossing, with its event and two deliveries. Each connection prepares the statement once.
        let balance = scene.amounts().await[0];
        least[1] = least[1].min(messages(&scene, balance - 499).await);
        assert_eq!(reported(&scene.other, &scene.id).await.len(), round);
        post(&scene.node, &scene.id, 501).await;
    }
    assert_eq!(least, [1, 1], "an ordinary charge, and one with an event");
    let deliveries = scene.other.deliveries(None, Default::default(), None, 100).await.unwrap().items;
    assert_eq!(deliveries.len(), 20);
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_threshold_takes_effect_on_all_nodes_immediately() {
    let Some(scene) = Scene::new(1_000, 2).await else { return };
    for _ in 0..3 {
        assert!(is_charged(&scene.node, &scene.key, 1, NOON).await);
    }
    scene.other.set_balance_alert(&scene.id, Some(atoms(997))).await.unwrap().unwrap();
    assert!(is_charged(&scene.node, &scene.key, 1, NOON).await);
    assert_eq!(reported(&scene.other, &scene.id).await, [EventKind::BalanceLow]);
    for _ in 0..70 {
        assert!(is_charged(&scene.node, &scene.key, 1, NOON).await);
    }
    let account = scene.other.set_balance_alert(&scene.id, None).await.unwrap().unwrap();
    assert_eq!(scene.node.account(&scene.id).await.unwrap().unwrap(), account);
    assert!(is_charged(&scene.node, &scene.key, 1, NOON).await);
    assert_eq!(scene.node.account(&scene.id).await.unwrap().unwrap().alert, account.alert);
    assert_eq!(reported(&scene.other, &scene.id).await, [EventKind::BalanceLow]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_responses_to_commits_lose_and_repeat_no_event() {
    let Some(scene) = Scene::new(1_000, 2).await else { return };
    scene.other.set_balance_alert(&scene.id, Some(atoms(500))).await.unwrap().unwrap();
    scene.link.cut_commits();
    for round in 1..=12 {
        assert!(is_charged(&scene.node, &scene.key, 501, NOON).await);
        assert_eq!(reported(&scene.other, &scene.id).await.len(), round);
        post(&scene.node, &scene.id, 501).await;
    }
    assert!(scene.link.cuts() > 6, "{}", scene.link.cuts());
    assert_eq!(reported(&scene.other, &scene.id).await, [EventKind::BalanceLow; 12]);
    scene.verify().await;
}
