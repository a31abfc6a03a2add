//! Events reach webhooks: verified, in order, again after failures, and after a crash.

use std::time::Duration;

use metering_core::{Clock, SystemClock};
use metering_tests::server::Server;
use metering_tests::site::Site;
use metering_tests::webhooks::{Library, Received, Reply};
use serde_json::{Value, json};

use super::{Scene, hook, never_logged};
use crate::support::wait::until;
use crate::support::wire::BASE;

fn kind(received: &Received) -> String {
    assert!(received.verified(), "{received:?}");
    received.body()["type"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_account_that_runs_out_gets_verified_events_in_order() {
    for library in Library::ALL {
        let scene = Scene::new();
        let Some(mut receiver) = scene.receiver(library) else { return };
        let account = scene.site.account("0.0004");
        // The secrets must not be in the log at its most verbose level either.
        let server = scene.server().set("METERING_LOG__FILTER", "debug").start();
        let client = server.client_with(&account.api_key);
        let webhook = hook(&client, &mut receiver, &[]);
        let alert = client.send("PUT", "/credits/alert", Some(br#"{"below": "0.0002"}"#)).expect(200).json();
        assert_eq!(alert, json!({"org_id": account.org_id, "below": 0.0002}));
        for _ in 0..3 {
            let _ = client.get(BASE).expect(200);
        }
        let _ = client.get(BASE).expect(402);
        let (low, exhausted) = (receiver.next(), receiver.next());
        assert_eq!((kind(&low), kind(&exhausted)), ("balance.low".into(), "balance.exhausted".into()));
        assert_eq!(
            (low.method(), low.path(), low.header("content-type")),
            ("POST", "/hooks?from=e2e", "application/json")
        );
        let data = &low.body()["data"];
        assert_eq!((&data["org_id"], &data["threshold"]), (&json!(account.org_id), &json!(0.0002)));
        assert!(data["balance"].as_f64().is_some_and(|balance| (0.0..0.0002).contains(&balance)), "{data}");
        receiver.gets_nothing(Duration::from_millis(300));
        // The list of events is what was sent, after the event of the account's first key.
        let events = client.get("/events").expect(200).json()["data"].as_array().unwrap().clone();
        let ids: Vec<_> = events.iter().rev().skip(1).map(|event| event["id"].clone()).collect();
        assert_eq!(ids, [low.id(), exhausted.id()]);
        assert_eq!((&events[2]["type"], &events[1]["data"]), (&json!("key.created"), &low.body()["data"]));
        let done = webhook.newest(&client, "delivered", 1);
        assert_eq!((&done["last_status"], &done["last_error"]), (&json!(204), &Value::Null));
        let metrics = server.client().get("/metrics").expect(200).text();
        assert!(metrics.contains("metering_webhook_attempts_total{outcome=\"delivered\"} 2"), "{metrics}");
        never_logged(&server, &[&webhook.secret, "from=e2e"]);
    }
}

#[test]
fn a_failing_webhook_gets_the_event_again_with_the_same_id_before_the_next_one() {
    let scene = Scene::new();
    let Some(mut receiver) = scene.receiver(Library::Python) else { return };
    let account = scene.site.account("1");
    let server = scene.server().start();
    let client = server.client_with(&account.api_key);
    let webhook = hook(&client, &mut receiver, &["key.created"]);
    receiver.respond(&[Reply::status(500)]);
    for name in ["first", "second"] {
        let _ = client.post("/keys", &json!({"name": name})).expect(201);
    }
    let (failed, again, next) = (receiver.next(), receiver.next(), receiver.next());
    assert_eq!(failed.id(), again.id());
    assert_ne!(again.id(), next.id());
    let names = [&failed, &again, &next].map(|received| received.body()["data"]["key_name"].clone());
    assert_eq!(names, ["first", "first", "second"]);
    let waited = again.timestamp().unwrap() - failed.timestamp().unwrap();
    assert!((4..=30).contains(&waited), "{waited} s, the timestamp is that of the attempt");
    assert!(failed.verified() && again.verified() && next.verified());
    let _ = webhook.newest(&client, "delivered", 1);
    let deliveries = webhook.deliveries(&client);
    assert_eq!((&deliveries[1]["attempts"], &deliveries[1]["state"]), (&json!(2), &json!("delivered")));
}

#[test]
fn both_secrets_verify_while_a_secret_is_replaced() {
    for library in Library::ALL {
        let scene = Scene::new();
        let Some(mut receiver) = scene.receiver(library) else { return };
        let account = scene.site.account("1");
        let server = scene.server().start();
        let client = server.client_with(&account.api_key);
        let webhook = hook(&client, &mut receiver, &[]);
        let rotated = client.send("POST", &webhook.path("/rotate"), None).expect(200).json();
        let new = rotated["secret"].as_str().unwrap().to_owned();
        assert!(rotated["data"]["old_secret_expires_at"].is_string(), "{rotated}");
        for secret in [&webhook.secret, &new] {
            receiver.set_secrets(&[secret]);
            let _ = client.send("POST", &webhook.path("/test"), None).expect(202);
            let received = receiver.next();
            assert_eq!((kind(&received).as_str(), received.signatures()), ("webhook.test", 2));
        }
        let at_once = client.post(&webhook.path("/rotate"), &json!({"grace_seconds": 0})).expect(200).json();
        receiver.set_secrets(&[&webhook.secret, &new, at_once["secret"].as_str().unwrap()]);
        let _ = client.send("POST", &webhook.path("/test"), None).expect(202);
        let received = receiver.next();
        assert_eq!((received.signatures(), received.secret()), (1, Some(2)));
        let shown = client.get("/webhooks").expect(200).text() + &client.get(&webhook.path("")).expect(200).text();
        assert!(!shown.contains("whsec_"), "{shown}");
        never_logged(&server, &[&webhook.secret, &new]);
    }
}

#[test]
fn an_event_survives_a_crash_before_its_delivery() {
    let scene = Scene::new();
    let Some(mut receiver) = scene.receiver(Library::JavaScript) else { return };
    let account = scene.site.account("1");
    // This server lets customers create webhooks and commits events, but delivers none.
    let silent = || scene.server().set("METERING_WEBHOOKS__DELIVER", "false").start();
    let server = silent();
    let client = server.client_with(&account.api_key);
    let _ = hook(&client, &mut receiver, &["key.created"]);
    let _ = client.post("/keys", &json!({"name": "committed"})).expect(201);
    receiver.gets_nothing(Duration::from_secs(3));
    server.kill();
    let server = silent();
    let metric = |name: &str| -> Option<f64> {
        let metrics = server.client().get("/metrics").expect(200).text();
        metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    };
    until("the backlog is counted", || metric("metering_webhook_deliveries_pending") == Some(1.0));
    assert_eq!(metric("metering_webhook_deliveries_parked"), Some(0.0));
    let due = metric("metering_webhook_oldest_due_seconds").unwrap();
    assert!((3.0..120.0).contains(&due), "{due}");
    server.kill();
    let server = scene.server().start();
    let received = receiver.next();
    assert_eq!((kind(&received).as_str(), &received.body()["data"]["key_name"]), ("key.created", &json!("committed")));
    receiver.gets_nothing(Duration::from_secs(1));
    drop(server);
    scene.site.verify();
}

/// Ends a server while the receiver hangs. Once the claim of that attempt has expired, at most half a minute after it was
/// made, the next server sends the same event again.
fn ended_in_the_middle_of_an_attempt(library: Library, end: impl FnOnce(Server)) {
    let scene = Scene::new();
    let Some(mut receiver) = scene.receiver(library) else { return };
    let account = scene.site.account("1");
    let server = scene.server().start();
    let client = server.client_with(&account.api_key);
    let webhook = hook(&client, &mut receiver, &[]);
    receiver.respond(&[Reply::hang()]);
    let _ = client.send("POST", &webhook.path("/test"), None).expect(202);
    let first = receiver.next();
    end(server);
    expires_soon(&scene.site);
    let server = scene.server().start();
    let client = server.client_with(&account.api_key);
    let pending = webhook.deliveries(&client).remove(0);
    assert_eq!((&pending["state"], &pending["attempts"]), (&json!("pending"), &json!(1)), "{pending}");
    let again = receiver.next();
    assert_eq!((again.id(), again.text()), (first.id(), first.text()));
    assert!(again.verified(), "{again:?}");
    let _ = webhook.newest(&client, "delivered", 2);
    receiver.gets_nothing(Duration::from_secs(1));
    drop(server);
    scene.site.verify();
}

/// As if most of the claim's lease on the only delivery had passed. No server runs.
fn expires_soon(site: &Site) {
    let database = rusqlite::Connection::open(site.database()).unwrap();
    let now = SystemClock.now().unix_millis();
    let pending = "SELECT next_at FROM delivery WHERE state = 'pending'";
    let claimed: i64 = database.query_row(pending, [], |row| row.get(0)).unwrap();
    assert!((now..=now + 30_000).contains(&claimed), "claimed for {} ms", claimed - now);
    let soon = "UPDATE delivery SET next_at = ?1 WHERE state = 'pending'";
    assert_eq!(database.execute(soon, [claimed.min(now + 6_000)]).unwrap(), 1);
}

#[test]
fn an_attempt_that_a_crash_interrupts_is_made_again_by_the_next_server() {
    ended_in_the_middle_of_an_attempt(Library::JavaScript, Server::kill);
}

#[test]
fn a_server_that_stops_leaves_hanging_attempts_to_the_next_one() {
    ended_in_the_middle_of_an_attempt(Library::Python, |mut server| {
        server.terminate();
        assert!(server.wait().success());
    });
}
