//! Limits on tokens per minute: a request's maximum counts until its response has reported its usage.

use std::time::Duration;

use metering_tests::client::Client;
use metering_tests::response::Response;
use serde_json::{Value, json};

use super::Scene;
use crate::keys::made;
use crate::support::calendar::{in_one_minute, minute_with};
use crate::support::script::json_response;
use crate::support::wire::balance;

/// Calls a route that estimates its tokens, and whose response reports that so many were used.
#[track_caller]
fn call(client: &Client, most: u32, used: u32) -> Response {
    let steps = [json_response(&format!(r#"{{"usage": {{"total_tokens": {used}}}}}"#))];
    client.post("/v1/estimate", &json!({"steps": steps, "max_tokens": most}))
}

/// The limit and the tokens left, as the headers have them.
fn left(response: &Response) -> [Option<&str>; 2] {
    ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens"].map(|name| response.header(name))
}

#[test]
fn used_tokens_replace_the_estimate_and_the_limit_is_never_passed() {
    in_one_minute(|| {
        let scene = Scene::new("10");
        let set = scene.site.admin_json(&["account", "limits", &scene.account.org_id, "--tpm", "150"]);
        assert_eq!(set["tokens_per_minute"], json!(150));
        let client = scene.client();
        minute_with(Duration::from_secs(30));
        let first = call(&client, 100, 40).expect(200);
        assert_eq!(left(&first), [Some("150"), Some("50")], "as when it was accepted");
        let reset = first.header("x-ratelimit-reset-tokens").unwrap();
        assert!(reset.ends_with('s'), "{reset}");

        let refused = call(&client, 111, 1).expect(429);
        let body = refused.json();
        assert_eq!((refused.error().as_str(), &body["limit_window"]), ("rate_limited", &json!("tokens")));
        assert_eq!((&body["tokens_per_minute"], left(&refused)), (&json!(150), [Some("150"), Some("110")]));
        assert!((1..=60).contains(&body["retry_after_sec"].as_u64().unwrap()), "{body}");
        let never = call(&client, 151, 1).expect(429);
        assert_eq!((never.header("retry-after"), &never.json()["retry_after_sec"]), (None, &Value::Null));

        // One that was not served gives everything back.
        let unavailable = "HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let _ = client.post("/v1/estimate", &json!({"steps": [unavailable], "max_tokens": 110})).expect(503);
        assert_eq!(left(&call(&client, 110, 10).expect(200)), [Some("150"), Some("0")]);
        assert_eq!(balance(&client), "9.95");
    });
}

#[test]
fn a_key_has_a_limit_within_its_accounts() {
    in_one_minute(|| {
        let scene = Scene::new("10");
        let key = made(&scene.client(), &json!({"tokens_per_minute": 60, "scopes": ["call"]}));
        let caller = scene.server.client_with(&key.secret);
        minute_with(Duration::from_secs(30));
        assert_eq!(left(&call(&caller, 50, 50).expect(200)), [Some("60"), Some("10")]);
        assert_eq!(call(&caller, 11, 1).expect(429).json()["limit_window"], json!("tokens"));
        let unlimited = call(&scene.client(), 200, 200).expect(200);
        assert_eq!(left(&unlimited), [None, None]);
        // A route whose response reports credits counts no tokens.
        let _ = caller.post("/v1/header", &json!({"steps": [json_response("{}")]})).expect(200);
    });
}
