//! Alerts about a low balance, mailed to verified addresses.

use metering_tests::client::Client;
use metering_tests::response::Response;
use serde_json::{Value, json};

use super::{balance, counted, key_of, scene, server_with, sign_up, verified, verify};
use crate::support::wait::until;

fn put(client: &Client, alert: &Value) -> Response {
    client.send("PUT", "/credits/alert", Some(alert.to_string().as_bytes()))
}

fn patch(client: &Client, webhook: &str, change: &Value) -> Response {
    client.send("PATCH", &format!("/webhooks/{webhook}"), Some(change.to_string().as_bytes()))
}

#[test]
fn a_low_balance_is_mailed_once() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    let key = verified(&server, &mail, "Jo@Example.com");
    let client = server.client_with(&key);
    let left = balance(&server, &key)["credit_balance"].to_string();
    let set = put(&client, &json!({"below": left})).expect(200).json();
    assert_eq!(set["email"], true, "a verified address is notified by default");
    for _ in 0..3 {
        let _ = client.get("/mpp/ethPrice").expect(200);
    }
    let message = mail.next();
    assert_eq!((message.to(), message.header("subject")), ("Jo@Example.com", "Your Acme balance is low"));
    let words = message.text();
    assert!(words.contains(&format!("fell below {left} credits")), "{words}");
    assert!(words.contains("Too early to say how long this lasts"), "{words}");
    assert!(words.contains("https://acme.example/metering/account#top-up"), "{words}");
    let events = client.get("/events").expect(200).json();
    let is_low = |event: &&Value| event["type"] == "balance.low";
    let low: Vec<&Value> = events["data"].as_array().unwrap().iter().filter(is_low).collect();
    let [low] = low[..] else { panic!("{events}") };
    let id = low["id"].as_str().unwrap();
    assert_eq!(message.header("message-id"), format!("<{id}@acme.example>"));
    until("the mail is counted", || counted(&server, "alert", "sent") == 1);
    mail.gets_nothing(std::time::Duration::from_secs(3));
    site.verify();
}

#[test]
fn alerts_are_mailed_where_they_are_switched_on() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    let account = sign_up(&server.client(), "jo@example.com");
    let token = mail.next().token().to_owned();
    let client = server.client_with(key_of(&account));
    // No one has verified this address yet.
    let set = put(&client, &json!({"below": 1})).expect(200).json();
    assert_eq!(set.get("email"), None, "{set}");
    let refused = client.post("/webhooks", &json!({"url": "mailto:jo@example.com"})).expect(400).json();
    assert!(refused["fields"]["url"].as_str().unwrap().contains("not verified"), "{refused}");
    let _ = verify(&server.client(), &token).expect(200);
    let alert = || client.get("/credits/alert").expect(200).json();
    assert_eq!(alert()["email"], true, "the alert was set before the address was verified");
    let listed = || client.get("/webhooks").expect(200).json()["data"].clone();
    let webhook = listed()[0].clone();
    assert_eq!(webhook["url"], "mailto:jo@example.com");
    assert_eq!(webhook["events"], json!(["balance.low", "balance.exhausted", "budget.exhausted", "top_up.stopped"]));

    // Off stays off until its owner says otherwise.
    assert_eq!(put(&client, &json!({"below": 1, "email": false})).expect(200).json()["email"], false);
    assert_eq!(put(&client, &json!({"below": 2})).expect(200).json()["email"], false);
    assert_eq!(listed()[0]["state"], "disabled");
    assert_eq!(put(&client, &json!({"below": 2, "email": true})).expect(200).json()["email"], true);
    assert_eq!((listed().as_array().unwrap().len(), &listed()[0]["state"]), (1, &json!("active")));

    // Mail only goes to the account's own address, about credits.
    let id = webhook["id"].as_str().unwrap();
    for (path, body, field) in [
        ("/webhooks", json!({"url": "mailto:other@example.com"}), "url"),
        ("/webhooks", json!({"url": "MAILTO:jo@example.com", "events": ["key.created"]}), "events"),
        ("/webhooks", json!({"url": "mailto:jo@example.com"}), "url"),
    ] {
        let refused = client.post(path, &body).expect(400).json();
        assert!(refused["fields"].get(field).is_some(), "{body}: {refused}");
    }
    for body in [json!({"url": "https://hooks.example.com/"}), json!({"events": ["payment.credited"]})] {
        let _ = patch(&client, id, &body).expect(400);
    }
    let other = client.post("/webhooks", &json!({"url": "https://hooks.example.com/"})).expect(201).json();
    let other = other["data"]["id"].as_str().unwrap();
    let _ = patch(&client, other, &json!({"url": "mailto:jo@example.com"})).expect(400);

    let _ = client.post(&format!("/webhooks/{id}/test"), &json!({})).expect(202);
    let test = mail.next();
    assert_eq!((test.to(), test.header("subject")), ("jo@example.com", "Test: alerts from Acme"));
    site.verify();
}
