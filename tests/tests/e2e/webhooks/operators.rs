//! The operator's own webhook, and deliveries that operators see and send again.

use std::net::SocketAddr;
use std::time::Duration;

use metering_tests::client::Client;
use metering_tests::ports::free_address;
use metering_tests::site::Site;
use metering_tests::webhooks::{Library, Receiver, Reply};
use serde_json::{Value, json};

use super::{Scene, hook, never_logged};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

fn manager(site: &Site, admin: SocketAddr) -> Client {
    let created = site.admin_json(&["operator", "create", "mo", "--role", "manager"]);
    Client::new(admin).with_key(created["token"].as_str().unwrap())
}

#[test]
fn the_operators_webhook_gets_the_chosen_events_of_all_accounts_over_plain_http() {
    for library in Library::ALL {
        let scene = Scene::new();
        let Some(mut receiver) = Receiver::start(library, None) else { return };
        receiver.set_secrets(&[OLD]);
        let (site, admin) = (&scene.site, free_address());
        let (one, two) = (site.account("1"), site.account("1"));
        let operator = manager(site, admin);
        let file = site.write("secret", &format!("{SECRET}\n"));
        let setup = site.server().set("METERING_WEBHOOKS__URL", &receiver.url("127.0.0.1", "/s3cret"));
        let setup = setup.set("METERING_WEBHOOKS__EVENTS", "key.created").set("METERING_LOG__FILTER", "debug");
        let setup = setup.set("METERING_WEBHOOKS__SECRET_FILE", &file.display().to_string());
        let setup = setup.set("METERING_WEBHOOKS__PREVIOUS_SECRET", OLD);
        let server = setup.set("METERING_ADMIN_LISTEN", &admin.to_string()).start();
        // It is stored before the server accepts requests, so no event is missed.
        let mut owners = Vec::new();
        for account in [&one, &two] {
            let client = server.client_with(&account.api_key);
            let _ = client.send("PUT", "/credits/alert", Some(br#"{"below": 2}"#)).expect(200);
            let _ = client.get(crate::support::wire::BASE).expect(200);
            let _ = client.post("/keys", &json!({"name": "a key"})).expect(201);
            let received = receiver.next();
            assert!(received.verified(), "with the previous secret: {received:?}");
            assert_eq!((received.signatures(), &received.body()["type"]), (2, &json!("key.created")));
            owners.push(received.body()["data"]["org_id"].clone());
        }
        assert_eq!(owners, [one.org_id, two.org_id]);
        let tested = operator.post("/admin/webhooks/test", &json!({"reason": "a try"})).expect(202).json();
        let received = receiver.next();
        assert_eq!(
            (&received.body()["type"], json!(received.id())),
            (&json!("webhook.test"), tested["data"]["event"]["id"].clone())
        );
        assert!(received.body()["data"].get("org_id").is_none(), "{received:?}");
        never_logged(&server, &[SECRET, OLD, "s3cret"]);
    }
}

#[test]
fn a_server_without_a_url_keeps_events_for_the_operators_webhook() {
    let scene = Scene::new();
    let Some(mut receiver) = Receiver::start(Library::JavaScript, None) else { return };
    receiver.set_secrets(&[SECRET]);
    let account = scene.site.account("1");
    let with_url = || {
        let setup = scene.site.server().set("METERING_WEBHOOKS__URL", &receiver.url("127.0.0.1", "/"));
        setup.set("METERING_WEBHOOKS__EVENTS", "key.created").set("METERING_WEBHOOKS__SECRET", SECRET)
    };
    with_url().start().kill();
    let without = scene.site.server().start();
    let created = without.client_with(&account.api_key).post("/keys", &json!({"name": "meanwhile"}));
    let _ = created.expect(201);
    receiver.gets_nothing(Duration::from_secs(3));
    let log = without.log();
    assert!(log.contains("this server has no webhooks.url"), "{log}");
    without.kill();
    let _server = with_url().start();
    let received = receiver.next();
    assert!(received.verified(), "{received:?}");
    assert_eq!(received.body()["data"]["key_name"], "meanwhile");
}

#[test]
fn operators_list_parked_deliveries_and_send_them_again() {
    let scene = Scene::new();
    let Some(mut receiver) = scene.receiver(Library::Python) else { return };
    let (site, admin) = (&scene.site, free_address());
    let account = site.account("1");
    let operator = manager(site, admin);
    let server = scene.server().set("METERING_ADMIN_LISTEN", &admin.to_string()).start();
    let client = server.client_with(&account.api_key);
    let webhook = hook(&client, &mut receiver, &[]);
    receiver.respond(&[Reply::status(410)]);
    let _ = client.send("POST", &webhook.path("/test"), None).expect(202);
    let first = receiver.next();
    let parked = webhook.newest(&client, "parked", 1);
    let listed = |query: &str| operator.get(&format!("/admin/webhooks/deliveries?{query}")).expect(200).json();
    let found = listed("state=parked");
    assert_eq!(
        (&found["data"][0]["id"], &found["data"][0]["event"]["data"]["org_id"]),
        (&parked["id"], &json!(account.org_id))
    );
    assert_eq!(
        listed(&format!("account={}&webhook={}", account.org_id, webhook.id))["data"].as_array().unwrap().len(),
        1
    );
    assert_eq!(listed("state=delivered")["data"], json!([]));
    let webhooks = operator.get(&format!("/admin/webhooks?account={}", account.org_id)).expect(200);
    assert!(!webhooks.text().contains("whsec_") && webhooks.json()["data"][0]["state"] == "gone", "{webhooks:?}");
    let metrics = Client::new(admin).get("/metrics").expect(200).text();
    assert!(metrics.contains("metering_webhook_deliveries_parked_total 1"), "{metrics}");
    let _ = client.send("PATCH", &webhook.path(""), Some(br#"{"disabled": false}"#)).expect(200);
    let resend = format!("/admin/webhooks/deliveries/{}/resend", parked["id"]);
    let _ = operator.post(&resend, &json!({})).expect(400);
    let _ = operator.post(&resend, &json!({"reason": "Ticket 311"})).expect(202);
    assert_eq!(receiver.next().id(), first.id());
    let _ = webhook.newest(&client, "delivered", 2);
    let entry = operator.get("/admin/audit").expect(200).json()["entries"][0].clone();
    assert_eq!((&entry["action"], &entry["subject"]), (&json!("webhook.resend"), &json!(account.org_id)));
    assert_eq!((&entry["before"]["state"], &entry["outcome"]["after"]["state"]), (&json!("parked"), &json!("pending")));
    let none = operator.post("/admin/webhooks/deliveries/17000/resend", &json!({"reason": "Ticket 311"}));
    assert_eq!(none.expect(404).error(), "not_found");
    assert_eq!(operator.post("/admin/webhooks/test", &json!({"reason": "a try"})).expect(404).error(), "not_found");
}

#[test]
fn operators_set_the_alert_of_an_account() {
    let site = Site::new();
    let admin = free_address();
    let account = site.account("1");
    let operator = manager(&site, admin);
    let server = site.server().set("METERING_ADMIN_LISTEN", &admin.to_string()).start();
    let path = format!("/admin/accounts/{}/alert", account.org_id);
    let put = |body: Value| operator.send("PUT", &path, Some(body.to_string().as_bytes()));
    assert_eq!(put(json!({"below": "0.5", "reason": "Ticket 311"})).expect(200).member("below"), "0.5");
    assert_eq!(server.client_with(&account.api_key).get("/credits/alert").expect(200).member("below"), "0.5");
    let _ = put(json!({"reason": "Ticket 311"})).expect(400);
    let _ = put(json!({"below": -1, "reason": "Ticket 311"})).expect(400);
    let entry = operator.get("/admin/audit").expect(200).json()["entries"][0].clone();
    assert_eq!((&entry["action"], &entry["outcome"]["after"]["below"]), (&json!("account.alert"), &json!(0.5)));
}
