//! Who may pass: every refusal looks the same.

use metering_core::{ApiKey, SystemRandomness};
use metering_tests::answer::Answer;
use metering_tests::client::Client;
use metering_tests::site::Site;

use crate::wire::{BASE, balance};

/// An answer but for its date.
fn undated(mut answer: Answer) -> Answer {
    answer.headers.retain(|(name, _)| name != "date");
    answer
}

#[test]
fn missing_malformed_unknown_and_revoked_keys_are_refused_alike() {
    let site = Site::new();
    let (live, revoked) = (site.account("1"), site.account("1"));
    let server = site.server().set("METERING_BILLING__INTERNAL_SECRET", "correct horse battery").start();
    let _ = site.admin_json(&["account", "revoke", &revoked.org_id, "--yes"]);
    let unknown = ApiKey::generate(&SystemRandomness);
    let mut mistyped = live.api_key.clone();
    let last = if mistyped.pop() == Some('0') { '1' } else { '0' };
    mistyped.push(last);
    let anonymous = server.client().with_header("X-BDS-Internal-Billing-Secret", "correct horse battery");
    let with = |name: &str, value: &str| anonymous.clone().with_header(name, value);
    let clients: Vec<Client> = vec![
        with("Authorization", "Bearer"),
        with("Authorization", "Bearer "),
        with("Authorization", "Bearer sk_live_"),
        with("Authorization", "Bearer sk_live_short"),
        with("Authorization", &format!("Bearer {mistyped}")),
        with("Authorization", &format!("Bearer {}", unknown.expose())),
        with("Authorization", &format!("Bearer {}", revoked.api_key)),
        with("Authorization", &format!("Basic {}", live.api_key)),
        with("Authorization", &live.api_key),
        with("Authorization", &format!("Bearer {} {}", live.api_key, live.api_key)),
        with("Authorization", &format!("Bearer {}", "x".repeat(5_000))),
        with("Authorization", "Bearer \u{e9}\u{20ac}"),
        with("X-API-Key", unknown.expose()),
        with("X-API-Key", &revoked.api_key),
        with("X-API-Key", ""),
        // Which of two keys would pay? Whoever inspects requests on their way might read the other one.
        with("Authorization", &format!("Bearer {}", live.api_key)).with_key(&live.api_key),
        with("Authorization", "Basic eA==").with_header("X-API-Key", &live.api_key),
    ];
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
        ("POST", "/internal/billing/deduct", Some(br#"{"path":"/a","method":"GET","credit_weight":1}"#.as_slice())),
        ("POST", "/internal/billing/deduct", Some(b"not JSON")),
        ("POST", "/internal/billing/lookup", None),
    ];
    for (method, path, body) in requests {
        let expected = undated(anonymous.send(method, path, body).expect(401));
        assert_eq!(expected.header("www-authenticate"), Some("Bearer"), "{path}");
        assert_eq!(expected.error(), "unauthorized", "{path}");
        for (index, client) in clients.iter().enumerate() {
            let answer = undated(client.send(method, path, body));
            assert_eq!(answer, expected, "{method} {path}, client {index}");
        }
    }
    assert_eq!(balance(&server.client_with(&live.api_key)), "1");
    site.verify();
}

#[test]
fn a_key_is_taken_from_either_header() {
    let site = Site::new();
    let (one, other) = (site.account("1"), site.account("1"));
    let server = site.server().start();
    let accepted = [
        server.client().with_header("Authorization", &format!("Bearer {}", one.api_key)),
        server.client().with_header("authorization", &format!("bEARER {}", one.api_key)),
        server.client().with_header("X-API-Key", &one.api_key),
        server.client().with_header("x-api-key", &one.api_key),
        // `Authorization` is the one that counts.
        server.client_with(&one.api_key).with_header("X-API-Key", &other.api_key),
    ];
    for client in &accepted {
        let _ = client.get(BASE).expect(200);
    }
    assert_eq!(balance(&server.client_with(&one.api_key)), "0.9993055556");
    assert_eq!(balance(&server.client_with(&other.api_key)), "1");
}
