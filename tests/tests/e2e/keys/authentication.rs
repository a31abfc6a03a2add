//! Authentication: the response to a malformed key names the error in its form, but no response reveals whether a key
//! ever existed.

use metering_core::{ApiKey, SystemRandomness};
use metering_tests::client::Client;
use metering_tests::response::Response;
use metering_tests::site::Site;

use crate::support::wire::{BASE, balance};

/// The message for every well-formed key that is not live.
const DEAD: &str = "this API key is not live: it is unknown here, was revoked or replaced";

/// A response without its date and the id of its request.
fn comparable(mut response: Response) -> Response {
    response.headers.retain(|(name, _)| name != "date" && name != "x-request-id");
    response
}

#[test]
fn malformed_keys_are_explained_and_unknown_look_like_revoked() {
    let site = Site::verified();
    let (live, revoked) = (site.account("1"), site.account("1"));
    let server = site.server().set("METERING_BILLING__INTERNAL_SECRET", "correct horse battery").start();
    let _ = site.admin_json(&["account", "revoke", &revoked.org_id, "--yes"]);
    let unknown = ApiKey::generate(&SystemRandomness);
    let mut mistyped = live.api_key.clone();
    let last = if mistyped.pop() == Some('0') { '1' } else { '0' };
    mistyped.push(last);
    let anonymous = server.client().with_header("X-BDS-Internal-Billing-Secret", "correct horse battery");
    let with = |name: &str, value: &str| anonymous.clone().with_header(name, value);
    // client, part of the message
    let clients: Vec<(Client, &str)> = vec![
        (with("Authorization", "Bearer"), "must be 'Bearer'"),
        (with("Authorization", "Bearer "), "must be 'Bearer'"),
        (with("Authorization", "Bearer sk_live_"), "46 characters"),
        (with("Authorization", "Bearer sk_live_short"), "46 characters"),
        (with("Authorization", &format!("Bearer {mistyped}")), "checksum is wrong"),
        (with("Authorization", &format!("Bearer {}", unknown.expose())), DEAD),
        (with("Authorization", &format!("Bearer {}", revoked.api_key)), DEAD),
        (with("Authorization", &format!("Basic {}", live.api_key)), "must be 'Bearer'"),
        (with("Authorization", &live.api_key), "must be 'Bearer'"),
        (with("Authorization", &format!("Bearer {} {}", live.api_key, live.api_key)), "46 characters"),
        (with("Authorization", &format!("Bearer {}", "x".repeat(5_000))), "starts with sk_live_"),
        (with("Authorization", "Bearer \u{e9}\u{20ac}"), "starts with sk_live_"),
        (with("X-API-Key", unknown.expose()), DEAD),
        (with("X-API-Key", &revoked.api_key), DEAD),
        (with("X-API-Key", ""), "starts with sk_live_"),
        // With two keys it is unclear which one pays, and a proxy that inspects requests might read the other one.
        (with("Authorization", &format!("Bearer {}", live.api_key)).with_key(&live.api_key), "send the API key once"),
        (with("Authorization", "Basic eA==").with_header("X-API-Key", "sk_live_short"), "46 characters"),
        (with("Authorization", &format!("Bearer sk_live_{}", "0f".repeat(40))), "104 characters"),
    ];
    // A name and a password are not a key: the other header has it.
    let beside = server.client().with_header("Authorization", "Basic eA==").with_header("X-API-Key", &live.api_key);
    let _ = beside.get("/credits/balance").expect(200);
    let requests = [
        ("GET", BASE, None),
        ("GET", "/mpp/stream/allTrades", None),
        ("GET", "/mpp/nothing", None),
        ("GET", "/mpp/ethPrice/x", None),
        ("GET", "/credits/balance", None),
        ("GET", "/credits/usage", None),
        ("GET", "/credits/usage?limit=x", None),
        ("GET", "/credits/usage/summary", None),
        ("GET", "/credits/usage/by-endpoint", None),
        ("GET", "/credits/usage/volumes", None),
        ("POST", "/internal/billing/deduct", Some(br#"{"path":"/a","method":"GET","credit_weight":1}"#.as_slice())),
        ("POST", "/internal/billing/deduct", Some(b"not JSON")),
        ("POST", "/internal/billing/lookup", None),
    ];
    for (method, path, body) in requests {
        let missing = comparable(anonymous.send(method, path, body).expect(401));
        assert_eq!(missing.header("www-authenticate"), Some("Bearer"), "{path}");
        assert_eq!(missing.error(), "unauthorized", "{path}");
        let mut dead: Option<Response> = None;
        for (client, expected) in &clients {
            let response = comparable(client.send(method, path, body));
            let message = response.member("message");
            assert!(message.contains(expected), "{method} {path}: {message}");
            assert!(!message.contains(&live.api_key[..12]), "{method} {path}: {message}");
            assert_eq!(
                (response.status, response.error()),
                (missing.status, missing.error()),
                "{method} {path}, {expected}"
            );
            assert_eq!(response.header("www-authenticate"), Some("Bearer"), "{method} {path}, {expected}");
            if *expected == DEAD {
                // Responses to unknown and revoked keys are identical.
                assert_eq!(*dead.get_or_insert_with(|| response.clone()), response, "{method} {path}");
            }
        }
    }
    assert_eq!(balance(&server.client_with(&live.api_key)), "1");
}

#[test]
fn key_is_accepted_in_either_header() {
    let site = Site::new();
    let (one, other) = (site.account("1"), site.account("1"));
    let server = site.server().start();
    let accepted = [
        server.client().with_header("Authorization", &format!("Bearer {}", one.api_key)),
        server.client().with_header("authorization", &format!("bEARER {}", one.api_key)),
        server.client().with_header("X-API-Key", &one.api_key),
        server.client().with_header("x-api-key", &one.api_key),
        // `Authorization` takes precedence.
        server.client_with(&one.api_key).with_header("X-API-Key", &other.api_key),
    ];
    for client in &accepted {
        let _ = client.get(BASE).expect(200);
    }
    assert_eq!(balance(&server.client_with(&one.api_key)), "0.9993055556");
    assert_eq!(balance(&server.client_with(&other.api_key)), "1");
}
