//! A link that was sent to the verified address signs a browser in, and does not change the key.

use serde_json::json;

use super::{scene, server_with, verified};

#[test]
fn a_link_signs_in_once() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    let key = verified(&server, &mail, "Jo@Example.com");
    let ask =
        |email: &str| server.client().post("/api-key/sessions/email", &json!({"email": email})).expect(202).json();
    let accepted = json!({"status": "accepted", "expires_in": 900});
    assert_eq!((ask("nobody@example.com"), ask("jo@EXAMPLE.com")), (accepted.clone(), accepted));
    let message = mail.next();
    assert_eq!((message.to(), message.header("subject")), ("Jo@Example.com", "Sign in to Acme"));
    let link = format!("https://acme.example/metering/recover#sign-in={}", message.token());
    assert_eq!(message.link(), link);
    let recovered = server.client().post("/api-key/recover/email/confirm", &json!({"token": message.token()}));
    assert_eq!(recovered.expect(410).error(), "link_expired", "it is for signing in only");

    let about = || server.client().post("/api-key/sessions/email/account", &json!({"token": message.token()}));
    let org_id = server.client_with(&key).get("/credits/balance").expect(200).json()["org_id"].clone();
    let own = json!({"org_id": org_id, "agent_name": "agent", "role": null});
    let shown = about().expect(200).json();
    assert_eq!((&shown["org_id"], &shown["accounts"], &shown["joins"]), (&org_id, &json!([own]), &json!(false)));

    let follow = |site: &str| {
        let page = server.client().with_header("Sec-Fetch-Site", site);
        page.post("/api-key/sessions/email/confirm", &json!({"token": message.token()}))
    };
    assert_eq!(follow("cross-site").expect(403).error(), "forbidden");
    let opened = follow("same-origin").expect(201);
    let cookie = opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let page = server.client().with_header("Cookie", &cookie).with_header("Sec-Fetch-Site", "same-origin");
    assert_eq!(page.get("/metering/session/credits/balance").expect(200).json()["email"], "Jo@Example.com");
    let _ = server.client_with(&key).get("/mpp/ethPrice").expect(200);
    assert_eq!(follow("same-origin").expect(410).error(), "link_expired");
    assert_eq!(about().expect(410).error(), "link_expired");
    let log = server.log();
    assert!(!log.contains(message.token()) && !log.contains("bst_"), "{log}");
    site.verify();
}

#[test]
fn a_member_is_invited_by_mail_and_what_they_do_is_logged() {
    let Some((site, mail)) = scene() else { return };
    let server = server_with(&site, &mail, &[]);
    let key = verified(&server, &mail, "owner@example.com");
    let owner = server.client_with(&key);
    let invited = owner.post("/members", &json!({"role": "developer", "email": "Dev@Example.com"})).expect(201).json();
    assert_eq!((&invited["data"]["state"], &invited["url"]), (&json!("invited"), &json!(null)));
    let message = mail.next();
    assert_eq!(message.to(), "Dev@Example.com");
    let sign_in = |token: &str| {
        let page = server.client().with_header("Sec-Fetch-Site", "same-origin");
        let opened = page.post("/api-key/sessions/email/confirm", &json!({"token": token})).expect(201);
        let cookie = opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        page.with_header("Cookie", &cookie)
    };
    let page = sign_in(message.token());
    let _ = page.post("/metering/session/keys", &json!({"name": "ci"})).expect(201);
    let wider = page.post("/metering/session/members", &json!({"role": "owner"}));
    assert_eq!(wider.expect(403).error(), "key_scope");
    let log = owner.get("/members/log").expect(200).json();
    let entry = |place: usize| [&log["data"][place]["action"], &log["data"][place]["actor_name"]];
    assert_eq!(entry(0), ["create_key", "Dev@Example.com"]);
    assert_eq!((entry(1)[0], entry(2)[0]), (&json!("join"), &json!("invite_member")));
    assert_eq!(log["data"][0]["status"], 201);
    // From now on, the address signs in.
    let _ = server.client().post("/api-key/sessions/email", &json!({"email": "dev@example.com"})).expect(202);
    let message = mail.next();
    assert_eq!(message.to(), "Dev@Example.com");
    let again = sign_in(message.token());
    assert_eq!(again.get("/metering/session/credits/balance").expect(200).json()["email"], "owner@example.com");
    site.verify();
}
