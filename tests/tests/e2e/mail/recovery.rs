//! A lost key is replaced with a link that was sent to the verified address.

use std::time::Duration;

use metering_tests::client::Client;
use metering_tests::response::Response;
use serde_json::json;

use super::{counted, key_of, scene, server_with, sign_up, verified, verify};
use crate::support::wait::until;

const ONCE: &str = "8e03978e-40d5-43e8-bc93-6894a57f9324";

fn ask(client: &Client, email: &str) -> Response {
    client.post("/api-key/recover/email", &json!({"email": email}))
}

fn confirm(client: Client, token: &str, idempotency_key: &str) -> Response {
    client
        .with_header("Idempotency-Key", idempotency_key)
        .post("/api-key/recover/email/confirm", &json!({"token": token}))
}

#[test]
fn a_link_replaces_the_key_once() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    let old = verified(&server, &mail, "Jo@Example.com");
    // The mail goes to the account's spelling of the address, no matter how the request spells it.
    assert_eq!(
        ask(&server.client(), "jo@EXAMPLE.com").expect(202).json(),
        json!({"status": "accepted", "expires_in": 600})
    );
    let message = mail.next();
    assert_eq!((message.to(), message.header("subject")), ("Jo@Example.com", "Replace your Acme API key"));
    assert!(message.link().starts_with("https://acme.example/metering/recover#eml_"), "{}", message.link());
    assert_eq!(
        verify(&server.client(), message.token()).expect(410).error(),
        "link_expired",
        "it is for recovery only"
    );
    let _ = server.client_with(&old).get("/mpp/ethPrice").expect(200);

    let short = confirm(server.client(), message.token(), "short").expect(400).json();
    assert!(short["fields"]["Idempotency-Key"].is_string(), "{short}");
    let recovered = confirm(server.client(), message.token(), ONCE).expect(200).json();
    let new = key_of(&recovered).to_owned();
    assert_eq!(recovered["rotated"], true);
    let _ = server.client_with(&old).get("/mpp/ethPrice").expect(401);
    let _ = server.client_with(&new).get("/mpp/ethPrice").expect(200);
    // The response was lost: the same request gets it again. Another one does not.
    assert_eq!(key_of(&confirm(server.client(), message.token(), ONCE).expect(200).json()), new);
    let another = confirm(server.client(), message.token(), &"x".repeat(32));
    assert_eq!(another.expect(410).error(), "link_expired");
    let without = server.client().post("/api-key/recover/email/confirm", &json!({"token": message.token()}));
    assert_eq!(without.expect(410).error(), "link_expired");

    let notice = mail.next();
    assert_eq!(notice.header("subject"), "Your Acme API key was replaced");
    assert!(!notice.text().contains("eml_") && !notice.text().contains("sk_live_"), "{}", notice.text());
    until("the mails are counted", || {
        counted(&server, "recovery", "sent") + counted(&server, "key_replaced", "sent") == 2
    });
    let log = server.log();
    assert!(!log.contains(message.token()) && !log.contains(&new) && !log.contains(ONCE), "{log}");
    site.verify();
}

#[test]
fn only_verified_addresses_get_a_link_and_nobody_can_tell() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    let _ = sign_up(&server.client(), "pending@example.com");
    let _ = mail.next();
    let revoked = verified(&server, &mail, "revoked@example.com");
    let org = super::balance(&server, &revoked)["org_id"].as_str().unwrap().to_owned();
    assert_eq!(site.admin(&["account", "revoke", &org, "--yes"]).code, Some(0));
    let create = ["account", "create", "--agent-name", "byhand", "--email", "unchecked@example.com"];
    let _ = site.admin_json(&create);
    let _ = verified(&server, &mail, "known@example.com");
    let responses: Vec<_> = ["pending", "revoked", "unchecked", "unknown", "known"]
        .map(|name| ask(&server.client(), &format!("{name}@example.com")).expect(202).text())
        .into();
    assert!(responses.windows(2).all(|pair| pair[0] == pair[1]), "{responses:?}");
    assert_eq!(mail.next().to(), "known@example.com");
    mail.gets_nothing(Duration::from_millis(500));
    assert_eq!(ask(&server.client(), "nonsense").expect(400).error(), "validation_failed");
}

#[test]
fn asking_again_and_again_locks_nobody_out() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    let _ = verified(&server, &mail, "jo@example.com");
    for _ in 0..6 {
        let _ = ask(&server.client(), "jo@example.com").expect(202);
    }
    let refused = [ask(&server.client(), "jo@example.com"), ask(&server.client(), "JO@example.com")];
    let refused = refused.map(|response| response.expect(429).error());
    assert_eq!(refused, ["rate_limited", "rate_limited"], "one network may ask only so often");
    let links = [mail.next(), mail.next(), mail.next()];
    mail.gets_nothing(Duration::from_millis(500));
    // The three were prepared at the same time, in any order. Exactly one of them is the newest, and works.
    let used = links.iter().filter(|link| {
        let path = "/api-key/recover/email/confirm";
        server.client().post(path, &json!({"token": link.token()})).status == 200
    });
    assert_eq!(used.count(), 1);
    site.verify();
}

#[test]
fn requests_from_one_network_are_limited() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[("METERING_LIMITS__RECOVERY_PER_IP", "2/1m")]);
    for _ in 0..2 {
        let _ = ask(&server.client(), "jo@example.com").expect(202);
    }
    assert_eq!(ask(&server.client(), "other@example.com").expect(429).error(), "rate_limited");
}
