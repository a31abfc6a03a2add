//! `metering admin webhook` and `metering admin account alert`, on a store.

use std::time::Duration;

use metering_core::events::{
    AttemptOutcome, DeliveryId, DeliveryState, NewWebhook, Webhook, WebhookId, WebhookOwner, WebhookSecret,
    WebhookTerms,
};
use metering_core::store::{EventStore, WebhookCreated};
use metering_core::{Store, SystemRandomness, Timestamp};
use serde_json::Value;

use super::now;
use crate::program::Program;
use crate::store::block_on;

/// An account `$org` with a webhook `$webhook`, to which one test is parked (`$parked`) and another one is pending
/// (`$pending`).
fn scene() -> Program {
    let (program, account) = Program::with_account();
    let (store, now) = (program.store(), now());
    block_on(async {
        let webhook = webhook(&*store, &account.org_id, now).await;
        let test = async || store.test_webhook(webhook.account.as_ref(), &webhook.id, now).await.unwrap().unwrap().id;
        let parked = test().await;
        park(&*store, parked, now).await;
        program.call("parked", parked.get().to_string());
        program.call("pending", test().await.get().to_string());
        program.call("webhook", webhook.id.to_string());
    });
    program
}

async fn webhook(store: &dyn EventStore, org: &str, now: Timestamp) -> Webhook {
    let url = "https://hooks.example.com/s3cret".parse().unwrap();
    let new = NewWebhook {
        id: WebhookId::generate(&SystemRandomness),
        account: org.parse().unwrap(),
        terms: WebhookTerms { url, kinds: "balance.low".parse().unwrap() },
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
    let due = store.claim_deliveries(now, Duration::from_secs(60), 1, WebhookOwner::Customers).await.unwrap();
    assert_eq!(due[0].delivery.id, id);
    let late = now.saturating_add(Duration::from_secs(4 * 86_400));
    let failed =
        AttemptOutcome::Failed { status: Some(503), error: "503 \u{7}".to_owned(), retry_after: None, response: None };
    let attempt = due[0].delivery.progress.attempts;
    let parked = store.finish_delivery(id, attempt, failed, late).await.unwrap().unwrap();
    assert_eq!(parked.progress.state, DeliveryState::Parked);
}

/// The numbers and states of the deliveries that a command lists.
fn listed(program: &Program, options: &str) -> String {
    let list: Value = program.json(&format!("webhook deliveries {options}"));
    let one = |delivery: &Value| format!("{} {}", delivery["id"], delivery["state"].as_str().unwrap());
    list["data"].as_array().unwrap().iter().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn parked_deliveries_are_found_and_sent_again() {
    let program = scene();
    let next = program.json::<Value>("webhook deliveries --limit 1")["next"].clone();
    program.call("next", next.as_str().unwrap());
    let (both, parked) = ("$pending pending, $parked parked", "$parked parked");
    for (options, expected) in [
        ("", both),
        ("--account $org", both),
        ("--webhook $webhook", both),
        ("--state parked", parked),
        ("--limit 1", "$pending pending"),
        ("--limit 1 --after $next", parked),
        ("--webhook $webhook --state parked --account $org", parked),
        ("--state delivered", ""),
        // The operator's own.
        ("--webhook we_00000000000000000000000000000000", ""),
    ] {
        assert_eq!(listed(&program, options), program.text(expected), "{options}");
    }
    let rows = program.rows("webhook deliveries --state parked");
    let cells: Vec<_> = rows[0].split(' ').collect();
    let (number, id) = (program.text("$parked"), program.text("$webhook"));
    assert_eq!((cells[0], cells[1], cells[3], cells[4]), (number.as_str(), "webhook.test", "parked", "1"), "{rows:?}");
    assert_eq!(cells[6..], [id.as_str(), "503", "\u{fffd}"], "{rows:?}");
    program.run("webhook deliveries --limit 1").expect(0).says(&program.text("run it again with --after $next"));

    let text = program.run("webhook resend $parked --reason 'Ticket 311'").success();
    assert!(text.starts_with("Queued for delivery.") && text.contains("pending"), "{text}");
    assert_eq!(listed(&program, "--state parked"), "");
    let newest = [("/entries/0/action", "\"webhook.resend\""), ("/entries/0/reason", "\"Ticket 311\"")];
    program.documents(&[("audit --subject $org", &newest)]);
    assert!(!program.run("audit --json").shows("whsec_"));
}

#[test]
fn webhooks_are_listed_without_their_secrets() {
    let program = scene();
    let rows = program.rows("webhook list --account $org");
    let cells: Vec<_> = rows[0].split(' ').collect();
    let id = program.text("$webhook");
    let expected = [id.as_str(), "active", "1", "waiting,", "0%", "delivered", "in", "7", "days", "balance.low"];
    assert_eq!((&cells[..10], cells[11]), (&expected[..], "https://hooks.example.com/s3cret"), "{rows:?}");
    let document = [("/data/0/id", "\"$webhook\""), ("/data/0/health/waiting", "1")];
    program.documents(&[("webhook list --account $org", &document)]);
    assert!(!program.run("webhook list --account $org --json").shows("whsec_"));
    assert!(program.rows("webhook list").is_empty(), "the operator has none");
}

#[test]
fn what_does_not_exist_is_not_found() {
    let program = scene();
    program.refuses(&[
        ("webhook resend 999", 4, "no delivery 999"),
        ("webhook test", 4, "webhooks.url"),
        ("webhook deliveries --after nonsense", 1, ""),
        ("webhook resend we_1", 2, "we_1"),
        ("webhook deliveries --state lost", 2, "lost"),
        ("webhook deliveries --webhook we_1", 2, "we_1"),
        ("account alert $org", 2, "--below"),
        ("account alert $org --below 0", 2, "--below"),
        ("account alert $org --below 1 --off", 2, "--off"),
    ]);
}

#[test]
fn the_alert_of_an_account_is_set_and_removed() {
    let program = scene();
    let text = program.run("account alert $org --below 2.5").success();
    assert_eq!(text, "Webhooks get balance.low when the balance falls below 2.5 credits.\n");
    let org = program.text("$org").parse().unwrap();
    let stored = block_on(program.store().account(&org)).unwrap().unwrap();
    assert_eq!(stored.alert.threshold, "2.5".parse().ok());
    program.documents(&[("account alert $org --off", &[("/below", "null"), ("/org_id", "\"$org\"")])]);
}
