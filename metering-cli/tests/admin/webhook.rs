//! `metering admin webhook` and `metering admin account alert`, on a store.

use std::time::Duration;

use metering_core::events::{
    AttemptOutcome, DeliveryId, DeliveryState, NewWebhook, Webhook, WebhookId, WebhookSecret, WebhookTerms,
};
use metering_core::store::WebhookCreated;
use metering_core::{EventStore, Store, SystemRandomness, Timestamp};
use serde_json::Value;

use crate::fixture::{Fixture, Issued, UNKNOWN_ACCOUNT, block_on, now};

const URL: &str = "https://hooks.example.com/s3cret";

/// An account with a webhook, to which one test is parked and another one is pending.
struct Scene {
    fixture: Fixture,
    account: Issued,
    webhook: Webhook,
    parked: DeliveryId,
    pending: DeliveryId,
}

impl Scene {
    fn new() -> Self {
        let fixture = Fixture::new();
        let account = fixture.create("my-agent", "10");
        let (store, now) = (fixture.store(), now());
        let (webhook, parked, pending) = block_on(async {
            let webhook = webhook(&*store, &account.org_id, now).await;
            let test =
                async || store.test_webhook(webhook.account.as_ref(), &webhook.id, now).await.unwrap().unwrap().id;
            let parked = test().await;
            park(&*store, parked, now).await;
            (webhook.clone(), parked, test().await)
        });
        Self { fixture, account, webhook, parked, pending }
    }

    /// The numbers and states of the deliveries that a command lists.
    fn listed(&self, args: &[&str]) -> Vec<(i64, String)> {
        let list: Value = self.fixture.json(&[&["webhook", "deliveries"], args].concat());
        let one = |delivery: &Value| (delivery["id"].as_i64().unwrap(), delivery["state"].as_str().unwrap().to_owned());
        list["data"].as_array().unwrap().iter().map(one).collect()
    }
}

async fn webhook(store: &dyn EventStore, org: &str, now: Timestamp) -> Webhook {
    let new = NewWebhook {
        id: WebhookId::generate(&SystemRandomness),
        account: org.parse().unwrap(),
        terms: WebhookTerms { url: URL.parse().unwrap(), kinds: "balance.low".parse().unwrap() },
        secret: WebhookSecret::generate(&SystemRandomness),
        max_webhooks: 10,
        created_at: now,
    };
    match store.create_webhook(new).await.unwrap() {
        WebhookCreated::Webhook(webhook) => webhook,
        other => panic!("{other:?}"),
    }
}

/// Fails a delivery for longer than it is retried.
async fn park(store: &dyn EventStore, id: DeliveryId, now: Timestamp) {
    let due = store
        .claim_deliveries(now, Duration::from_secs(60), 1, metering_core::events::WebhookOwner::Customers)
        .await
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(due.delivery.id, id);
    let late = now.saturating_add(Duration::from_secs(4 * 86_400));
    let failed = AttemptOutcome::Failed { status: Some(503), error: "503 \u{7}".to_owned(), retry_after: None };
    let attempt = due.delivery.progress.attempts;
    let parked = store.finish_delivery(id, attempt, failed, late).await.unwrap().unwrap();
    assert_eq!(parked.progress.state, DeliveryState::Parked);
}

#[test]
fn parked_deliveries_are_found_and_sent_again() {
    let scene = Scene::new();
    let (parked, pending) = (scene.parked.get(), scene.pending.get());
    let both = vec![(pending, "pending".to_owned()), (parked, "parked".to_owned())];
    assert_eq!(scene.listed(&[]), both);
    assert_eq!(scene.listed(&["--account", &scene.account.org_id]), both);
    assert_eq!(scene.listed(&["--state", "parked"]), both[1..]);
    assert_eq!(scene.listed(&["--state", "delivered"]), []);
    let table = scene.fixture.admin(&["webhook", "deliveries", "--state", "parked"]).success().stdout;
    let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    let (number, id) = (parked.to_string(), scene.webhook.id.to_string());
    assert_eq!((row[0], row[1], row[3], row[4]), (number.as_str(), "webhook.test", "parked", "1"), "{table}");
    assert_eq!(row[6..], [id.as_str(), "503", "\u{fffd}"], "{table}");
    let first = scene.fixture.admin(&["webhook", "deliveries", "--limit", "1"]);
    let next = scene.fixture.json::<Value>(&["webhook", "deliveries", "--limit", "1"])["next"].clone();
    let next = next.as_str().unwrap();
    assert!(first.code == 0 && first.stderr.contains(&format!("run it again with --after {next}")), "{first:?}");
    assert_eq!(scene.listed(&["--limit", "1", "--after", next]), both[1..]);
    assert_eq!(scene.listed(&["--webhook", &id]), both);
    assert_eq!(scene.listed(&["--webhook", &id, "--state", "parked", "--account", &scene.account.org_id]), both[1..]);
    assert_eq!(scene.listed(&["--webhook", "we_00000000000000000000000000000000"]), [], "the operator's own");
    scene.fixture.admin(&["webhook", "deliveries", "--after", "nonsense"]).failure(1);

    let text = scene.fixture.admin(&["webhook", "resend", &number, "--reason", "Ticket 311"]).success().stdout;
    assert!(text.starts_with("Queued for delivery.") && text.contains("pending"), "{text}");
    assert_eq!(scene.listed(&["--state", "parked"]), []);
    let log: Value = scene.fixture.json(&["audit", "--subject", &scene.account.org_id]);
    let entry = &log["entries"][0];
    assert_eq!((&entry["action"], &entry["reason"]), (&"webhook.resend".into(), &"Ticket 311".into()));
    assert!(!log.to_string().contains("whsec_"));
}

#[test]
fn webhooks_are_listed_without_their_secrets() {
    let scene = Scene::new();
    let id = scene.webhook.id.to_string();
    let text = scene.fixture.admin(&["webhook", "list", "--account", &scene.account.org_id]).success().stdout;
    let row: Vec<_> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((row[0], row[1], row[2], row[4]), (id.as_str(), "active", "balance.low", URL), "{text}");
    let list: Value = scene.fixture.json(&["webhook", "list", "--account", &scene.account.org_id]);
    assert!(list["data"][0]["id"] == id.as_str() && !list.to_string().contains("whsec_"), "{list}");
    assert_eq!(scene.fixture.admin(&["webhook", "list"]).success().stdout.lines().count(), 1, "the operator has none");
}

#[test]
fn what_does_not_exist_is_not_found() {
    let scene = Scene::new();
    let missing = scene.fixture.admin(&["webhook", "resend", "999"]).failure(4);
    assert!(missing.contains("no delivery 999"), "{missing}");
    let missing = scene.fixture.admin(&["webhook", "test"]).failure(4);
    assert!(missing.contains("webhooks.url"), "{missing}");
    for args in [&["webhook", "list", "--account"][..], &["webhook", "deliveries", "--account"]] {
        scene.fixture.admin(&[args, &[UNKNOWN_ACCOUNT]].concat()).failure(4);
    }
    scene.fixture.admin(&["account", "alert", UNKNOWN_ACCOUNT, "--below", "1"]).failure(4);
    let org = scene.account.org_id.as_str();
    for args in [
        &["webhook", "resend", "we_1"][..],
        &["webhook", "deliveries", "--state", "lost"],
        &["webhook", "deliveries", "--webhook", "we_1"],
        &["account", "alert", org],
        &["account", "alert", org, "--below", "0"],
        &["account", "alert", org, "--below", "1", "--off"],
    ] {
        scene.fixture.admin(args).misuse();
    }
}

#[test]
fn the_alert_of_an_account_is_set_and_removed() {
    let scene = Scene::new();
    let org = scene.account.org_id.as_str();
    let text = scene.fixture.admin(&["account", "alert", org, "--below", "2.5"]).success().stdout;
    assert_eq!(text, "Webhooks get balance.low when the balance falls below 2.5 credits.\n");
    let stored = block_on(async { scene.fixture.store().account(&org.parse().unwrap()).await.unwrap().unwrap() });
    assert_eq!(stored.alert.threshold, "2.5".parse().ok());
    let document: Value = scene.fixture.json(&["account", "alert", org, "--off"]);
    assert!(document["below"].is_null() && document["org_id"] == org, "{document}");
}
