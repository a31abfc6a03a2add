//! The pages behind the links, in a real browser: scenes of `tests/browser/mail.mjs`.

use metering_tests::mail::{self, MailServer};
use metering_tests::site::Site;
use serde_json::json;

use super::{key_of, server_with_pages, sign_up, verified, verify};
use crate::pages::{play, with_browser};

#[test]
fn a_link_on_a_page_verifies_the_address() {
    if mail::are_skipped() || !with_browser() {
        return;
    }
    let (site, mail) = (Site::verified(), MailServer::start());
    let server = server_with_pages(&site, &mail);
    play("mailSignup", &server, json!({}));
    assert_eq!((mail.next().to(), mail.next().to()), ("page@example.com", "page@example.com"));

    let account = sign_up(&server.client(), "jo@example.com");
    let link = mail.next().link().to_owned();
    let _ = sign_up(&server.client(), "taken@example.com");
    let taken = mail.next().link().to_owned();
    let _ = sign_up(&server.client(), "taken@example.com");
    let _ = verify(&server.client(), mail.next().token()).expect(200);
    play("mailVerify", &server, json!({"link": link, "key": key_of(&account), "taken": taken}));
    assert!(!server.log().contains("eml_"));
}

#[test]
fn a_link_on_a_page_replaces_a_lost_key() {
    if mail::are_skipped() || !with_browser() {
        return;
    }
    let (site, mail) = (Site::verified(), MailServer::start());
    let server = server_with_pages(&site, &mail);
    let client = server.client();
    let [old, other] = ["jo@example.com", "other@example.com"].map(|email| {
        let account = sign_up(&client, email);
        let _ = verify(&client, mail.next().token()).expect(200);
        account
    });
    let _ = client.post("/api-key/recover/email", &json!({"email": "other@example.com"})).expect(202);
    let expired = mail.next().link().to_owned();
    let database = rusqlite::Connection::open(site.database()).unwrap();
    let changed = "UPDATE email_link SET expires_at = 1 WHERE purpose = 'recover_key'";
    assert_eq!(database.execute(changed, []).unwrap(), 1);
    drop(database);

    play("mailAsk", &server, json!({"email": "jo@example.com"}));
    let link = mail.next().link().to_owned();
    // This key cannot manage keys, so the recovery leaves it.
    let kept = server.client().with_key(key_of(&old)).post("/keys", &json!({"name": "crawler"})).expect(201).json();
    let keys = json!({"link": link, "old": key_of(&old), "kept": kept["key"], "expired": expired});
    play("mailRecover", &server, keys);
    assert_eq!(mail.next().header("subject"), "Your Metering API key was replaced");
    let _ = server.client_with(key_of(&other)).get("/credits/balance").expect(200);
    assert!(!server.log().contains("eml_") && !server.log().contains("sk_live_"));
}

#[test]
fn a_link_on_a_page_signs_in() {
    if mail::are_skipped() || !with_browser() {
        return;
    }
    let (site, mail) = (Site::verified(), MailServer::start());
    let server = server_with_pages(&site, &mail);
    let account = sign_up(&server.client(), "jo@example.com");
    let _ = verify(&server.client(), mail.next().token()).expect(200);
    let _ = server.client().post("/api-key/sessions/email", &json!({"email": "jo@example.com"})).expect(202);
    let about = json!({"link": mail.next().link(), "key": key_of(&account), "account": account["org_id"]});
    play("mailSignIn", &server, about);
    assert!(!server.log().contains("eml_") && !server.log().contains("bst_"));
}

#[test]
fn an_alert_is_mailed_unless_its_owner_switches_that_off() {
    if mail::are_skipped() || !with_browser() {
        return;
    }
    let (site, mail) = (Site::verified(), MailServer::start());
    let server = server_with_pages(&site, &mail);
    let key = verified(&server, &mail, "jo@example.com");
    play("mailAlert", &server, json!({"key": key, "email": "jo@example.com"}));
    assert_eq!(mail.next().header("subject"), "Test: alerts from Metering");
}
