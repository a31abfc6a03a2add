//! Sessions of browsers: the cookie's attributes, its scope, and what ends it.

use metering_tests::client::Client;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::json;

const ROTATION: &str = "8e03978e-40d5-43e8-bc93-6894a57f9324";

/// Signs in with a key, from a page of this origin. Returns the whole `Set-Cookie`.
fn sign_in(server: &Server, key: &str, origin: &str) -> String {
    let page = server.client_with(key).with_header("Origin", origin).with_header("Sec-Fetch-Site", "same-origin");
    let response = page.post("/api-key/sessions", &json!({})).expect(201);
    assert_eq!(response.json()["data"]["current"], true, "{}", response.text());
    response.header("set-cookie").expect("there is a cookie").to_owned()
}

/// A browser with the cookie that was set.
fn browser(server: &Server, set_cookie: &str) -> Client {
    server.client().with_header("Cookie", set_cookie.split(';').next().unwrap())
}

/// A page of the service in that browser.
fn page(server: &Server, set_cookie: &str) -> Client {
    browser(server, set_cookie).with_header("Sec-Fetch-Site", "same-origin")
}

#[test]
fn the_cookie_is_for_the_calls_of_the_account_only() {
    let site = Site::verified();
    let key = site.account("2").api_key;
    let server = site.server().start();
    let cookie = sign_in(&server, &key, "https://acme.example");
    let attributes = "; Path=/metering/session; HttpOnly; SameSite=Strict; Secure; Max-Age=7776000";
    assert!(cookie.starts_with("metering_session=bst_") && cookie.ends_with(attributes), "{cookie}");
    let local = sign_in(&server, &key, "http://localhost:8787");
    assert!(!local.contains("Secure"), "{local}");

    let page = page(&server, &cookie);
    let balance = page.get("/metering/session/credits/balance").expect(200).json();
    assert_eq!(balance, server.client_with(&key).get("/credits/balance").expect(200).json());
    // In any other place a client may send it, it has no effect.
    assert_eq!(page.get("/credits/balance").expect(401).error(), "unauthorized");
    assert_eq!(page.get("/mpp/ethPrice").expect(401).error(), "unauthorized");
    let _ = page.get("/metering/session/mpp/ethPrice").expect(404);
    let _ = page.post("/metering/session/internal/billing/deduct", &json!({})).expect(404);
    let _ = page.post("/metering/session/api-key/sessions", &json!({})).expect(404);
    let log = server.log();
    assert!(!log.contains("bst_") && !log.contains("sk_live_"), "{log}");
}

#[test]
fn pages_of_other_sites_use_no_session() {
    let site = Site::new();
    let key = site.account("2").api_key;
    let server = site.server().start();
    let cookie = sign_in(&server, &key, "https://acme.example");
    for from in ["cross-site", "same-site", "none"] {
        let elsewhere = browser(&server, &cookie).with_header("Sec-Fetch-Site", from);
        assert_eq!(elsewhere.get("/metering/session/credits/balance").expect(403).error(), "forbidden", "{from}");
        let made = elsewhere.post("/metering/session/keys", &json!({"name": "stolen"}));
        assert_eq!(made.expect(403).error(), "forbidden", "{from}");
    }
    // A browser that sends neither header can read.
    let old = browser(&server, &cookie);
    let _ = old.get("/metering/session/credits/balance").expect(200);
    let _ = old.post("/metering/session/keys", &json!({"name": "stolen"})).expect(403);
    let evil = old.with_header("Origin", "https://evil.example");
    let _ = evil.post("/metering/session/keys", &json!({"name": "stolen"})).expect(403);
    // Nor can another site sign the browser in to the site's own account.
    let elsewhere = server.client_with(&key).with_header("Sec-Fetch-Site", "cross-site");
    let refused = elsewhere.post("/api-key/sessions", &json!({})).expect(403);
    assert_eq!(refused.header("set-cookie"), None);
    let elsewhere = server.client_with(&key).with_header("Origin", "https://evil.example");
    assert_eq!(elsewhere.post("/api-key/sessions", &json!({})).expect(403).header("set-cookie"), None);
}

#[test]
fn sessions_are_listed_and_ended_one_by_one_and_all() {
    let site = Site::new();
    let key = site.account("2").api_key;
    let server = site.server().start();
    let [first, second, third] = [(); 3].map(|()| sign_in(&server, &key, "https://acme.example"));
    let (first, second, third) = (page(&server, &first), page(&server, &second), page(&server, &third));
    let listed = first.get("/metering/session/api-key/sessions").expect(200).json();
    let sessions = listed["data"].as_array().unwrap();
    assert_eq!(sessions.len(), 3, "{listed}");
    let other = sessions.iter().find(|session| session["current"] == false).unwrap();
    assert_eq!(sessions.iter().filter(|session| session["current"] == true).count(), 1, "{listed}");
    let path = format!("/metering/session/api-key/sessions/{}", other["id"].as_str().unwrap());
    assert_eq!(first.send("DELETE", &path, None).expect(200).json(), json!({"ended": 1}));
    assert_eq!(first.send("DELETE", &path, None).expect(404).error(), "not_found");
    let balances = || [&second, &third].map(|page| page.get("/metering/session/credits/balance").status);
    assert!(balances().contains(&200) && balances().contains(&401), "one of them was signed out: {:?}", balances());

    // Signing out makes the browser forget the cookie.
    let out = first.send("DELETE", "/metering/session/api-key/sessions/current", None).expect(200);
    assert!(out.header("set-cookie").unwrap().starts_with("metering_session=;"), "{:?}", out.header("set-cookie"));
    let gone = first.get("/metering/session/credits/balance").expect(401);
    assert!(gone.header("set-cookie").unwrap().contains("Max-Age=0"), "{:?}", gone.header("set-cookie"));
    let owner = server.client_with(&key);
    assert_eq!(owner.send("DELETE", "/api-key/sessions", None).expect(200).json(), json!({"ended": 1}));
    assert_eq!(owner.get("/api-key/sessions").expect(200).json(), json!({"data": []}));
    assert_eq!(balances(), [401, 401]);
    let _ = owner.get("/credits/balance").expect(200);
}

#[test]
fn a_session_ends_with_its_key_and_has_its_rights() {
    let site = Site::verified();
    let key = site.account("2").api_key;
    let server = site.server().start();
    let owner = server.client_with(&key);
    let reader = super::made(&owner, &json!({"name": "reader", "scopes": ["read"]}));
    let of_reader = page(&server, &sign_in(&server, &reader.secret, "https://acme.example"));
    let _ = of_reader.get("/metering/session/credits/balance").expect(200);
    let refused = of_reader.post("/metering/session/keys", &json!({"name": "more"}));
    assert_eq!(refused.expect(403).error(), "key_scope");
    assert_eq!(of_reader.get("/metering/session/api-key/sessions").expect(403).error(), "key_scope");
    let _ = owner.send("DELETE", &reader.path(), None).expect(200);
    let _ = of_reader.get("/metering/session/credits/balance").expect(401);

    // A rotation with a grace period keeps the secret for programs, and ends the session.
    let graceful = page(&server, &sign_in(&server, &key, "https://acme.example"));
    let rotated = owner.post("/keys/current/rotate", &json!({"grace_seconds": 600})).expect(200).json();
    let _ = owner.get("/credits/balance").expect(200);
    let _ = graceful.get("/metering/session/credits/balance").expect(401);
    let _ = owner.with_header("Sec-Fetch-Site", "same-origin").post("/api-key/sessions", &json!({})).expect(401);

    // A session can rotate its key, and a lost response can be had again, although the session has ended with it.
    let key = rotated["api_key"].as_str().unwrap();
    let rotating =
        page(&server, &sign_in(&server, key, "https://acme.example")).with_header("Idempotency-Key", ROTATION);
    let rotate = || rotating.post("/metering/session/keys/current/rotate", &json!({})).expect(200).json();
    let (once, again) = (rotate(), rotate());
    assert_eq!(once["api_key"], again["api_key"]);
    let _ = rotating.get("/metering/session/credits/balance").expect(401);
    let _ = server.client_with(once["api_key"].as_str().unwrap()).get("/credits/balance").expect(200);
}
