//! Where webhooks are never sent: private addresses, whether a URL names them, DNS does or a redirect does.

use std::net::TcpListener;
use std::time::Duration;

use metering_tests::site::Site;
use metering_tests::webhooks::{Library, Reply};
use serde_json::json;

use super::{Hook, Scene, hook};

#[test]
fn urls_that_are_not_public_are_refused_when_a_webhook_is_created() {
    let (_site, account, server) = Site::serving("1");
    let client = server.client_with(&account.api_key);
    for url in [
        "http://hooks.example.com/",
        "https://127.0.0.1/",
        "https://0x7f.1/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://localhost/",
        "https://metadata.google.internal/",
        "https://user:s3cret@hooks.example.com/",
    ] {
        let refused = client.post("/webhooks", &json!({"url": url})).expect(400);
        assert_eq!(refused.error(), "validation_failed", "{url}");
        assert!(
            refused.json()["fields"]["url"].is_string() && !refused.text().contains("s3cret"),
            "{url}: {refused:?}"
        );
    }
    let created = Hook::of(&client.post("/webhooks", &json!({"url": "https://hooks.example.com/"})).expect(201));
    let change = client.send("PATCH", &created.path(""), Some(br#"{"url": "https://127.0.0.1/"}"#)).expect(400);
    assert!(change.json()["fields"]["url"].is_string(), "{change:?}");
}

/// `localhost` is the only name that surely resolves to this machine, and it is refused when a webhook is created. So a
/// server that allows it stores the URL, and one that does not sends.
#[test]
fn a_name_that_resolves_to_this_machine_gets_no_connection() {
    let scene = Scene::new();
    let account = scene.site.account("1");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let permissive = scene.server().start();
    let client = permissive.client_with(&account.api_key);
    let url = format!("https://localhost:{port}/hooks");
    let webhook = Hook::of(&client.post("/webhooks", &json!({"url": url})).expect(201));
    permissive.kill();
    // The same URL, without permission for this machine: now only its addresses tell.
    let server = scene.site.server().start();
    let client = server.client_with(&account.api_key);
    let _ = client.send("POST", &webhook.path("/test"), None).expect(202);
    let failed = webhook.newest(&client, "pending", 1);
    let error = failed["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("no address that webhooks may be sent to"), "{failed}");
    assert!(!error.contains("127.0.0.1"), "{error}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nothing connected");
}

#[test]
fn redirects_are_failures_that_are_not_followed() {
    let scene = Scene::new();
    let Some(mut receiver) = scene.receiver(Library::Python) else { return };
    let Some(elsewhere) = scene.receiver(Library::JavaScript) else { return };
    let account = scene.site.account("1");
    let server = scene.server().start();
    let client = server.client_with(&account.api_key);
    let webhook = hook(&client, &mut receiver, &[]);
    receiver.respond(&[Reply::redirect(&elsewhere.url("127.0.0.1", "/internal"))]);
    let _ = client.send("POST", &webhook.path("/test"), None).expect(202);
    let first = receiver.next();
    let failed = webhook.newest(&client, "pending", 1);
    assert_eq!(failed["last_status"], 302);
    assert!(failed["last_error"].as_str().unwrap().contains("redirect"), "{failed}");
    assert_eq!(receiver.next().id(), first.id(), "it is sent again to its own URL");
    elsewhere.gets_nothing(Duration::from_millis(500));
}

#[test]
fn a_webhook_that_is_gone_is_switched_off_until_its_owner_switches_it_on() {
    let scene = Scene::new();
    let Some(mut receiver) = scene.receiver(Library::JavaScript) else { return };
    let account = scene.site.account("1");
    let server = scene.server().start();
    let client = server.client_with(&account.api_key);
    let webhook = hook(&client, &mut receiver, &[]);
    receiver.respond(&[Reply::status(410)]);
    let _ = client.send("POST", &webhook.path("/test"), None).expect(202);
    let first = receiver.next();
    let parked = webhook.newest(&client, "parked", 1);
    assert_eq!(client.get(&webhook.path("")).expect(200).json()["data"]["state"], "gone");
    assert_eq!(client.send("POST", &webhook.path("/test"), None).expect(409).error(), "conflict");
    let _ = client.post("/keys", &json!({"name": "no one is notified"})).expect(201);
    receiver.gets_nothing(Duration::from_secs(3));
    let _ = client.send("PATCH", &webhook.path(""), Some(br#"{"disabled": false}"#)).expect(200);
    let resend = webhook.path(&format!("/deliveries/{}/resend", parked["id"]));
    let _ = client.send("POST", &resend, None).expect(202);
    let again = receiver.next();
    assert_eq!((again.id(), again.verified()), (first.id(), true));
    let _ = webhook.newest(&client, "delivered", 2);
}
