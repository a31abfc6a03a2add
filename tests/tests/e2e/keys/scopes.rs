//! Scopes: which endpoint takes which.

use std::collections::BTreeSet;

use metering_tests::client::Client;
use metering_tests::site::Site;
use serde_json::json;

use super::made;
use crate::support::wire::BASE;

/// Method, path and scope of every endpoint that takes a key, apart from the metered routes. One of several scopes is
/// enough. With `first`, no scope is: the endpoint takes only the account's first key.
const ENDPOINTS: [(&str, &str, &str); 73] = [
    ("GET", "/credits/balance", "read"),
    ("GET", "/account/export", "first"),
    ("GET", "/credits/usage", "read"),
    ("GET", "/credits/usage/summary", "read"),
    ("GET", "/credits/usage/by-endpoint", "read"),
    ("GET", "/credits/usage/volumes", "read"),
    ("GET", "/credits/usage/daily", "read"),
    ("GET", "/credits/usage.csv", "read"),
    ("GET", "/credits/ledger", "read"),
    ("GET", "/credits/ledger.csv", "read"),
    ("GET", "/credits/receipts", "read"),
    ("GET", "/credits/receipt", "read"),
    ("GET", "/credits/receipt.pdf", "read"),
    ("POST", "/credits/receipt/buyer", "first"),
    ("GET", "/credits/buyer", "read"),
    ("PUT", "/credits/buyer", "first"),
    ("GET", "/credits/auto-top-up", "read"),
    ("PUT", "/credits/auto-top-up", "first"),
    ("DELETE", "/credits/auto-top-up", "first"),
    ("DELETE", "/credits/card", "first"),
    ("GET", "/credits/topup/quote", "topup read"),
    ("POST", "/credits/topup", "topup"),
    ("POST", "/credits/topup/quote", "topup"),
    ("POST", "/credits/checkout", "topup"),
    ("GET", "/credits/auto-top-up", "read"),
    ("PUT", "/credits/auto-top-up", "first"),
    ("DELETE", "/credits/auto-top-up", "first"),
    ("DELETE", "/credits/card", "first"),
    ("POST", "/credits/pay", "topup"),
    ("POST", "/internal/billing/pay", "topup"),
    ("GET", "/statements/{period}", "read"),
    ("GET", "/statements/{period}/lines.csv", "read"),
    ("GET", "/requests", "read"),
    ("GET", "/requests/{id}", "call read"),
    ("POST", "/signup/email/send", "manage"),
    ("GET", "/credits/alert", "read"),
    ("PUT", "/credits/alert", "first"),
    ("GET", "/events", "read"),
    ("GET", "/webhooks", "read"),
    ("POST", "/webhooks", "first"),
    ("GET", "/webhooks/{id}", "read"),
    ("PATCH", "/webhooks/{id}", "first"),
    ("DELETE", "/webhooks/{id}", "first"),
    ("POST", "/webhooks/{id}/rotate", "first"),
    ("POST", "/webhooks/{id}/test", "manage"),
    ("GET", "/webhooks/{id}/deliveries", "read"),
    ("GET", "/webhooks/{id}/deliveries/{delivery}", "read"),
    ("POST", "/webhooks/{id}/deliveries/{delivery}/resend", "manage"),
    ("GET", "/keys", "manage"),
    ("POST", "/keys", "manage"),
    ("GET", "/keys/{id}", "manage"),
    ("PATCH", "/keys/{id}", "manage"),
    ("DELETE", "/keys/{id}", "manage"),
    ("POST", "/keys/{id}/rotate", "manage"),
    ("POST", "/oauth/consents", "manage"),
    ("GET", "/members", "first"),
    ("POST", "/members", "first"),
    ("GET", "/members/log", "first"),
    ("PATCH", "/members/{id}", "first"),
    ("DELETE", "/members/{id}", "first"),
    ("GET", "/accounts", "first"),
    ("POST", "/accounts", "first"),
    ("GET", "/accounts/usage", "first"),
    ("GET", "/accounts/{id}", "first"),
    ("PATCH", "/accounts/{id}", "first"),
    ("POST", "/accounts/{id}/credits", "first"),
    ("POST", "/accounts/{id}/rotate", "first"),
    ("DELETE", "/accounts/{id}", "first"),
    ("POST", "/api-key/sessions", "call read manage topup"),
    ("GET", "/api-key/sessions", "manage"),
    ("DELETE", "/api-key/sessions", "manage"),
    ("DELETE", "/api-key/sessions/{id}", "manage"),
    // The last one, because it replaces the secret that it is sent with.
    ("POST", "/keys/current/rotate", "manage"),
];

const SCOPES: [&str; 4] = ["call", "read", "manage", "topup"];

/// Whether the request is refused because of its key. Its body is wrong for every endpoint: the scope is checked first.
#[track_caller]
fn is_refused(client: &Client, method: &str, path: &str) -> bool {
    let path =
        path.replace("{id}", "key_0123456789abcdef0123").replace("{delivery}", "17").replace("{period}", "2026-11");
    let response = client.send(method, &path, Some(b"{\"name\": 1}"));
    assert_ne!(response.status, 401, "{method} {path}: {}", response.text());
    assert_eq!(response.status == 403, response.error() == "key_scope", "{method} {path}: {}", response.text());
    response.status == 403
}

#[test]
fn each_endpoint_takes_one_scope() {
    let (_site, account, server) = Site::serving("2");
    let owner = server.client_with(&account.api_key);
    for scope in SCOPES {
        let key = made(&owner, &json!({"scopes": [scope]}));
        let client = server.client_with(&key.secret);
        assert_eq!(client.get("/keys/current").expect(200).json()["data"]["scopes"], json!([scope]), "needs no scope");
        let called = client.get(BASE);
        let expected = if scope == "call" { (200, "") } else { (403, "key_scope") };
        assert_eq!((called.status, called.error().as_str()), expected, "{scope}");
        for (method, path, needed) in ENDPOINTS {
            let is_enough = needed.split(' ').any(|needed| needed == scope);
            assert_eq!(is_refused(&client, method, path), !is_enough, "{method} {path} with {scope}");
        }
    }
}

#[test]
fn table_has_every_endpoint_that_takes_a_key() {
    let site = Site::new();
    let server = site.server().start();
    let document = server.client().get("/openapi.json").expect(200).json();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let takes_key =
                operation["security"].as_array().is_some_and(|all| all.iter().any(|one| one["api_key"].is_array()));
            let is_ours = operation["tags"] != json!(["metered"]) && method != "head";
            let responses = &operation["responses"];
            if takes_key {
                let refusal = responses["403"]["description"].as_str().unwrap_or_default();
                assert!(refusal.contains("key_scope") && refusal.contains("key_network"), "{method} {path}: {refusal}");
                let refusal = responses["401"]["description"].as_str().unwrap_or_default();
                assert!(refusal.contains("key_expired"), "{method} {path}: {refusal}");
            }
            if takes_key && is_ours {
                described.insert((method.to_uppercase(), path.clone()));
            }
        }
    }
    let listed = ENDPOINTS.map(|(method, path, _)| (method.to_owned(), path.to_owned()));
    assert_eq!(described, BTreeSet::from(listed));
}

#[test]
fn routes_of_a_key_are_checked_before_the_price() {
    let (_site, account, server) =
        Site::serving_with("2", |server| server.set("METERING_BILLING__INTERNAL_SECRET", "correct horse battery"));
    let owner = server.client_with(&account.api_key);
    let key = made(&owner, &json!({"scopes": ["call"], "routes": [format!("GET {BASE}")]}));
    let client = server.client_with(&key.secret);
    assert_eq!(client.get(BASE).status, 200);
    let refused = client.get("/mpp/ethPrice").expect(403);
    assert_eq!(refused.error(), "key_scope");
    assert!(refused.text().contains("nothing was charged") || refused.text().contains("Nothing was charged"));
    let deduct = json!({"path": "/mpp/ethPrice", "method": "GET"});
    let resolver = client.with_header("X-BDS-Internal-Billing-Secret", "correct horse battery");
    assert_eq!(resolver.post("/internal/billing/deduct", &deduct).expect(403).error(), "key_scope");
    assert_eq!(owner.get("/credits/usage/summary").expect(200).json()["totals"]["usage_events"], 1);
    let metrics = server.client().get("/metrics").expect(200).text();
    assert!(metrics.contains("metering_charges_total{outcome=\"key_not_allowed\"} 2"), "{metrics}");
}
