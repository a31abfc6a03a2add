//! Webhooks, events and deliveries: of every kind and in every state.

use std::time::Duration;

use metering_core::FullStore;
use metering_core::events::{
    AttemptOutcome, DeliveryFilter, NewWebhook, SinkTurn, Webhook, WebhookChange, WebhookId, WebhookSecret,
    WebhookTerms,
};
use metering_core::events::{DueDelivery, WebhookOwner};
use metering_core::store::{EventStore, UsageSinkStore, WebhookCreated};
use metering_core::{AccountId, Credits, Store, Timestamp};
use metering_sqlite::SqliteStore;

use super::filling::{charge, grant, later};
use super::{NOON, account_id, customer};

/// An account whose balance is low, with webhooks.
pub(crate) const NOTIFIED: u8 = 10;

const LEASE: Duration = Duration::from_secs(60);
const SINK: &str = "größe's";

fn id(number: u8) -> WebhookId {
    WebhookId::from_bytes([number; 16])
}

fn secret(digit: char) -> WebhookSecret {
    let digits: String = std::iter::repeat_n(digit, 32).collect();
    WebhookSecret::parse(&format!("whsec_{digits}")).unwrap()
}

fn terms(kinds: &str) -> WebhookTerms {
    let url = "https://hooks.example.com/größe?token=it's".parse().unwrap();
    WebhookTerms { url, kinds: kinds.parse().unwrap() }
}

async fn webhook(store: &SqliteStore, account: &AccountId, number: u8, kinds: &str) -> Webhook {
    let new = NewWebhook {
        id: id(number),
        account: account.clone(),
        terms: terms(kinds),
        secret: secret('a'),
        max_webhooks: 10,
        created_at: later(number.into()),
    };
    match store.create_webhook(new).await.unwrap() {
        WebhookCreated::Webhook(webhook) => webhook,
        refused => panic!("{refused:?}"),
    }
}

/// The ids do not follow the order of creation. Before the operator's webhook, nothing is delivered to it.
pub(crate) async fn fill(store: &SqliteStore) {
    let (notified, key) = customer(store, NOTIFIED, grant(3)).await;
    for (number, kinds) in [(9, ""), (3, "balance.low payment.credited"), (7, "")] {
        webhook(store, &notified, number, kinds).await;
    }
    let rotation = WebhookChange::Rotate { secret: secret('b'), old_until: Some(later(86_400)) };
    assert!(store.change_webhook(&notified, &id(9), rotation, NOON).await.unwrap().is_some());
    store.set_operator_webhook(Some(terms("")), later(1)).await.unwrap();
    let threshold = Some(Credits::from_atoms(2 * Credits::BASE_CALL.atoms() + 1));
    store.set_balance_alert(&notified, threshold).await.unwrap();
    for _ in 0..4 {
        store.commit(vec![charge(key, "/a", None)], NOON).await.unwrap();
    }
    for webhook in [Some(&notified), None] {
        let id = if webhook.is_some() { id(9) } else { WebhookId::OPERATOR };
        assert!(store.test_webhook(webhook, &id, NOON).await.unwrap().is_some());
    }
    // One is delivered, one fails, one is parked with a webhook that is gone, and one is being sent.
    let due = claim(store, later(2), 5).await;
    let error = "größer — 'x'".to_owned();
    let outcomes = [
        AttemptOutcome::Failed {
            status: Some(503),
            error: error.clone(),
            retry_after: Some(LEASE),
            response: Some("disk\tfull".to_owned()),
        },
        AttemptOutcome::Failed { status: None, error, retry_after: None, response: None },
        AttemptOutcome::Gone,
        AttemptOutcome::Delivered { status: 204 },
    ];
    for (due, outcome) in due.iter().zip(outcomes) {
        let (id, attempt) = (due.delivery.id, due.delivery.progress.attempts);
        assert!(store.finish_delivery(id, attempt, outcome, later(3)).await.unwrap().is_some());
    }
    assert_eq!(due.len(), 5, "one delivery is being sent");
    fill_sink(store).await;
}

/// A sink that some usage was sent to, and more is on its way.
async fn fill_sink(store: &SqliteStore) {
    let sink = store.claim_usage_sink(SINK, NOON, LEASE).await.unwrap().unwrap();
    let staged = store.stage_usage(SINK, NOON.day(), None, 50, NOON).await.unwrap();
    let batch = store.staged_usage(SINK, 5).await.unwrap();
    assert!(staged.items > 5 && batch.len() == 5, "{staged:?}");
    let (attempt, turn) = (sink.progress.attempts, SinkTurn::Sent(AttemptOutcome::Delivered { status: 204 }));
    assert!(store.finish_usage(SINK, attempt, batch, turn, NOON).await.unwrap().is_some());
}

/// Claims at most `limit` deliveries: to customers, then to the operator.
async fn claim(store: &dyn FullStore, now: Timestamp, limit: u32) -> Vec<DueDelivery> {
    let mut due = store.claim_deliveries(now, LEASE, limit, WebhookOwner::Customers).await.unwrap();
    let room = limit - u32::try_from(due.len()).unwrap();
    due.extend(store.claim_deliveries(now, LEASE, room, WebhookOwner::Operator).await.unwrap());
    due
}

/// Every result of every reading method, as text.
pub(crate) async fn snapshot(store: &dyn FullStore, accounts: impl Iterator<Item = &AccountId>) -> Vec<String> {
    let mut texts = vec![format!("{:?}", store.webhooks(None).await.unwrap())];
    for account in accounts {
        texts.push(format!("{:?}", store.webhooks(Some(account)).await.unwrap()));
        texts.push(format!("{:?}", store.events(account, None, u32::MAX).await.unwrap()));
        let deliveries = store.deliveries(Some(account), DeliveryFilter::default(), None, u32::MAX).await.unwrap();
        texts.push(format!("{deliveries:?}"));
    }
    texts.push(format!("{:?}", store.deliveries(None, DeliveryFilter::default(), None, u32::MAX).await.unwrap()));
    texts.push(format!("{:?}", store.usage_sinks().await.unwrap()));
    let mut staged: Vec<_> =
        store.staged_usage(SINK, u32::MAX).await.unwrap().iter().map(|row| format!("{row:?}")).collect();
    staged.sort_unstable();
    texts.extend(staged);
    // Their debug output leaves secrets out.
    let of_notified = store.webhooks(Some(&account_id(NOTIFIED))).await.unwrap();
    let secrets = of_notified.iter().flat_map(|webhook| &webhook.secrets);
    texts.extend(secrets.map(|secret| secret.secret.expose().to_string()));
    texts
}
