//! Free credits come with a verified address, once.

use std::time::Duration;

use metering_tests::site::Site;
use serde_json::json;

use super::{balance, counted, key_of, scene, server_with, sign_up, verified, verify};
use crate::signup::{initiate, server, status};
use crate::support::wait::until;

#[test]
fn free_credits_come_with_the_verified_address() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    let client = server.client();
    let account = sign_up(&client, "Jo@Example.com");
    assert_eq!(account["credit_balance"], 0);
    assert_eq!(account["email_verification"], json!({"status": "pending", "free_credits": 2}));
    let owner = server.client_with(key_of(&account));
    assert_eq!(owner.get("/mpp/ethPrice").expect(402).error(), "insufficient_credits");
    assert_eq!(balance(&server, key_of(&account))["email_verification"]["status"], "pending");

    let message = mail.next();
    assert_eq!((message.to(), message.header("to")), ("Jo@Example.com", "Jo@Example.com"));
    assert_eq!(message.header("from"), "Acme <hello@acme.example>");
    assert_eq!(message.header("subject"), "Verify your email address for Acme");
    assert_eq!(message.header("auto-submitted"), "auto-generated");
    assert!(message.header("message-id").ends_with("@acme.example>") && !message.header("date").is_empty());
    assert_eq!((&message.0["type"], &message.0["hello"]), (&json!("multipart/alternative"), &json!("acme.example")));
    assert!(message.link().starts_with("https://acme.example/metering/verify-email#eml_"), "{}", message.link());
    assert!(message.0["html"].as_str().unwrap().contains(message.link()));

    let done = verify(&client, message.token()).expect(200).json();
    assert_eq!((&done["status"], &done["email"]), (&json!("verified"), &json!("Jo@Example.com")));
    assert_eq!((&done["credits_granted"], &done["org_id"]), (&json!(2), &account["org_id"]));
    let _ = owner.get("/mpp/ethPrice").expect(200);
    assert_eq!(balance(&server, key_of(&account))["email_verification"]["status"], "verified");
    assert_eq!(verify(&client, message.token()).expect(410).error(), "link_expired");
    assert_eq!(verify(&client, "eml_made_up").expect(410).error(), "link_expired");
    assert_eq!(client.post("/signup/email/verify", &json!({})).expect(400).error(), "validation_failed");

    until("the mail is counted", || counted(&server, "verification", "sent") == 1);
    let log = server.log();
    assert!(!log.contains(message.token()) && !log.to_lowercase().contains("jo@example"), "{log}");
    site.verify();
}

#[test]
fn unverified_address_blocks_nobody() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    let client = server.client();
    let squatter = sign_up(&client, "jo@example.com");
    let squatters = mail.next();
    let owner = sign_up(&client, "JO@example.com");
    let owners = mail.next();
    let _ = verify(&client, owners.token()).expect(200);
    let late = verify(&client, squatters.token()).expect(409);
    assert_eq!(late.error(), "email_already_registered");
    assert_eq!(balance(&server, key_of(&squatter))["credit_balance"], 0);
    assert_eq!(balance(&server, key_of(&owner))["credit_balance"], 2);
    let again = client.post("/signup/initiate", &json!({"email": "jo@EXAMPLE.com", "agent_name": "agent"}));
    assert_eq!(again.expect(409).error(), "email_already_registered");
    let resend = server.client_with(key_of(&squatter)).post("/signup/email/send", &json!({}));
    assert_eq!(resend.expect(409).error(), "email_already_registered");
    // Mail cannot reach this one.
    let refused = client.post("/signup/initiate", &json!({"email": "a..b@example.com", "agent_name": "a"})).expect(400);
    assert_eq!(refused.json()["fields"]["email"], "must be an email address such as name@example.com");
    site.verify();
}

#[test]
fn a_new_link_replaces_the_old_one() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    let account = sign_up(&server.client(), "jo@example.com");
    let owner = server.client_with(key_of(&account));
    let first = mail.next();
    let sent = owner.post("/signup/email/send", &json!({})).expect(202).json();
    assert_eq!(sent, json!({"status": "sent", "email": "jo@example.com", "expires_in": 86_400}));
    let second = mail.next();
    assert_eq!(verify(&owner, first.token()).expect(410).error(), "link_expired");
    let _ = verify(&owner, second.token()).expect(200);
    assert_eq!(owner.post("/signup/email/send", &json!({})).expect(202).json()["status"], "verified");
    let without = server.client_with(&site.account("1").api_key);
    assert_eq!(without.post("/signup/email/send", &json!({})).expect(409).error(), "no_email_address");
    assert_eq!(server.client().post("/signup/email/send", &json!({})).expect(401).error(), "unauthorized");
    mail.gets_nothing(Duration::from_millis(500));
}

#[test]
fn a_new_key_brings_no_more_links() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    let mut key = key_of(&sign_up(&server.client(), "jo@example.com")).to_owned();
    let _ = mail.next();
    for _ in 0..3 {
        let _ = server.client_with(&key).post("/signup/email/send", &json!({})).expect(202);
        let _ = mail.next();
        let rotated = server.client_with(&key).post("/keys/current/rotate", &json!({})).expect(200).json();
        key = key_of(&rotated).to_owned();
    }
    let refused = server.client_with(&key).post("/signup/email/send", &json!({})).expect(429);
    assert_eq!(refused.error(), "rate_limited");
    mail.gets_nothing(Duration::from_millis(500));
}

#[test]
fn older_accounts_can_verify_but_get_no_credits_again() {
    let Some((site, mail)) = scene() else { return };
    let older = server(&site, &[("METERING_SIGNUP__BOT_CHECK", "off")]);
    let account = sign_up(&older.client(), "jo@example.com");
    assert_eq!((&account["credit_balance"], account.get("email_verification")), (&json!(2), None));
    older.kill();
    let server = server_with(&site, &mail, &[]);
    let key = key_of(&account);
    assert_eq!(balance(&server, key)["email_verification"]["status"], "unchecked");
    let again = server.client().post("/signup/initiate", &json!({"email": "jo@example.com", "agent_name": "agent"}));
    assert_eq!(again.expect(409).error(), "email_already_registered", "it holds the address, as before");
    let _ = server.client_with(key).post("/signup/email/send", &json!({})).expect(202);
    let done = verify(&server.client(), mail.next().token()).expect(200).json();
    assert_eq!(done["credits_granted"], 0);
    assert_eq!(balance(&server, key)["credit_balance"], 2);
    site.verify();
}

#[test]
fn without_smtp_nothing_changes() {
    let site = Site::new();
    let server = server(&site, &[("METERING_SIGNUP__BOT_CHECK", "off")]);
    let client = server.client();
    let account = sign_up(&client, "jo@example.com");
    assert_eq!((&account["credit_balance"], account.get("email_verification")), (&json!(2), None));
    assert_eq!(balance(&server, key_of(&account)).get("email_verification"), None);
    let owner = server.client_with(key_of(&account));
    assert_eq!(owner.post("/signup/email/send", &json!({})).expect(404).error(), "not_found");
    let recover = client.post("/api-key/recover/email", &json!({"email": "jo@example.com"}));
    assert_eq!(recover.expect(404).error(), "not_found");
}

#[test]
fn verification_can_be_switched_off() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[("METERING_SIGNUP__VERIFY_EMAIL", "false")]);
    let account = sign_up(&server.client(), "jo@example.com");
    assert_eq!(account["credit_balance"], 2);
    mail.gets_nothing(Duration::from_millis(500));
}

#[test]
fn signup_of_a_terminal_says_that_the_address_must_be_verified() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    // Approved while another account verifies the address: the session still gets its key, but no credits.
    let session = initiate(&server.client(), "jo@example.com");
    let body = json!({"user_code": session["user_code"], "tos_accepted": true});
    let _ = server.client().post("/verify", &body).expect(200);
    let _ = verified(&server, &mail, "jo@example.com");
    let account = status(&server.client(), &session).expect(200).json();
    assert_eq!(account["credit_balance"], 0);
    assert_eq!(verify(&server.client(), mail.next().token()).expect(409).error(), "email_already_registered");
    site.verify();
}
