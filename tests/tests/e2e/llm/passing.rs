//! What clients get through the gateway: complete responses, streams with their usage, and readable refusals.

use std::cell::RefCell;

use metering_tests::litellm;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::llm::setup::{COMPLETION_TOKENS, LANGUAGES, PROMPT_TOKENS, setup, text};
use crate::support::wait::until;
use crate::support::wire::balance;

/// The usage that the client reports for the models `short` and `slow`.
fn usage() -> Value {
    json!({"prompt": PROMPT_TOKENS, "completion": COMPLETION_TOKENS})
}

#[test]
fn clients_get_completions_and_their_usage() {
    if litellm::is_skipped() {
        return;
    }
    let site = Site::new();
    let server = setup(&site, &json!("0.01")).start();
    for language in LANGUAGES {
        let key = site.account("1").api_key;
        let plain = language.run(&server, &key, "short", &["plain"]);
        assert_eq!((&plain["status"], &plain["usage"]), (&json!(200), &usage()), "{language:?}: {plain}");
        assert_eq!(plain["text"], json!(text(COMPLETION_TOKENS)), "{language:?}");
        assert_eq!((&plain["credit_charged"], &plain["credit_balance"]), (&json!("0.01"), &json!("0.99")), "{plain}");
    }
    site.verify();
}

#[test]
fn streams_are_whole_though_the_gateway_asks_for_their_usage() {
    if litellm::is_skipped() {
        return;
    }
    let site = Site::new();
    let server = setup(&site, &json!("0.01")).start();
    for language in LANGUAGES {
        let key = site.account("1").api_key;
        let stream = language.run(&server, &key, "short", &["stream"]);
        assert_eq!((&stream["status"], &stream["text"]), (&json!(200), &json!(text(COMPLETION_TOKENS))), "{stream}");
        assert!(stream["error"].is_null(), "{language:?}: {stream}");
    }
    site.verify();
}

#[test]
fn clients_cannot_turn_the_usage_of_streams_off() {
    if litellm::is_skipped() {
        return;
    }
    let site = Site::new();
    let key = site.account("1").api_key;
    let server = setup(&site, &json!("0.01")).start();
    let client = server.client_with(&key).with_header("content-type", "application/json");
    let body = |model: &str, fields: &str| {
        format!(r#"{{"model": "{model}", "messages": [{{"role": "user", "content": "Hi."}}], {fields}}}"#)
    };
    let options = [r#"{"include_usage": false}"#, "{}", "null"];
    for fields in options.map(|options| format!(r#""stream": true, "stream_options": {options}"#)) {
        for model in ["short", "mock"] {
            let response =
                client.send("POST", "/v1/chat/completions", Some(body(model, &fields).as_bytes())).expect(200);
            assert!(response.text().contains(r#""content":"#), "{fields}: {}", response.text());
        }
    }
    // LiteLLM would stream for these too, but in another format.
    for fields in [r#""stream": 1"#, r#""stream": "yes""#, r#""stream": true, "stream_options": "none""#] {
        let _ = client.send("POST", "/v1/chat/completions", Some(body("short", fields).as_bytes())).expect(400);
    }
}

#[test]
fn route_of_a_model_serves_no_other() {
    if litellm::is_skipped() {
        return;
    }
    let site = Site::new();
    let key = site.account("1").api_key;
    let server = setup(&site, &json!("0.01")).start();
    let client = server.client_with(&key);
    let messages = json!([{"role": "user", "content": "Hi."}]);
    let call = |model: &str, more: Value| {
        let mut body = json!({"model": "mock", "messages": messages});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.post(&format!("/openai/deployments/{model}/chat/completions"), &body)
    };
    let short = call("short", json!({})).expect(200).json();
    assert_eq!(short["choices"][0]["message"]["content"], json!(text(COMPLETION_TOKENS)), "{short}");
    for field in ["fallbacks", "context_window_fallbacks", "content_policy_fallbacks"] {
        let _ = call("broken", json!({field: ["mock"]})).expect(500);
    }
    let _ = client.post("/openai/deployments/mock/chat/completions", &json!({"messages": messages})).expect(404);
    let _ = call("short", json!({"extra_body": {"model": "long"}})).expect(200);
}

#[test]
fn stream_of_a_client_that_leaves_is_closed() {
    if litellm::is_skipped() {
        return;
    }
    let site = Site::new();
    // The next stream gets the slot only when the one before has ended.
    let server = setup(&site, &json!("0.01")).set("METERING_GATEWAY__MAX_STREAMS_PER_KEY", "1").start();
    for language in LANGUAGES {
        let account = site.account("1");
        let left = language.run(&server, &account.api_key, "slow", &["abort"]);
        assert_eq!(
            (&left["status"], &left["text"], &left["usage"]),
            (&json!(200), &json!("0"), &Value::Null),
            "{left}"
        );
        let client = server.client_with(&account.api_key);
        assert_eq!(balance(&client), "0.99", "{language:?}");
        // The server notices that the client has gone when it sends the next events.
        let next = RefCell::new(Value::Null);
        until("the slot is free", || {
            next.replace(language.run(&server, &account.api_key, "short", &["stream"]));
            next.borrow()["status"] != 429
        });
        let next = next.into_inner();
        assert_eq!(next["text"], json!(text(COMPLETION_TOKENS)), "{language:?}: {next}");
    }
    site.verify();
}

#[test]
fn stream_that_breaks_in_the_model_ends_with_an_error() {
    if litellm::is_skipped() {
        return;
    }
    let site = Site::new();
    let server = setup(&site, &json!("0.01")).start();
    for language in LANGUAGES {
        let key = site.account("1").api_key;
        let broken = language.run(&server, &key, "broken", &["stream"]);
        assert_eq!((&broken["status"], &broken["text"]), (&json!(200), &json!(text(5))), "{language:?}: {broken}");
        assert!(broken["error"].as_str().is_some_and(|error| error.contains("the model broke")), "{broken}");
        assert!(broken["usage"].is_null(), "{broken}");
    }
    site.verify();
}

#[test]
fn clients_can_tell_why_they_are_refused() {
    if litellm::is_skipped() {
        return;
    }
    let site = Site::new();
    let server = setup(&site, &json!("0.01")).start();
    for language in LANGUAGES {
        for scenario in ["plain", "stream"] {
            let key = site.account("0").api_key;
            let refused = language.run(&server, &key, "short", &[scenario]);
            let reason = (&refused["status"], &refused["code"]);
            assert_eq!(reason, (&json!(402), &json!("insufficient_credits")), "{language:?}: {refused}");
        }
    }
    site.verify();
}

#[test]
fn concurrent_calls_are_each_charged_once() {
    if litellm::is_skipped() {
        return;
    }
    let site = Site::new();
    let server = setup(&site, &json!("0.01")).set("METERING_GATEWAY__MAX_STREAMS_PER_KEY", "100").start();
    for language in LANGUAGES {
        let account = site.account("0.1");
        let race = language.run(&server, &account.api_key, "short", &["race", "16"]);
        assert_eq!(race["statuses"], json!({"200": 10, "402": 6}), "{language:?}: {race}");
        assert_eq!(race["completion"], json!(10 * COMPLETION_TOKENS), "{language:?}: {race}");
        assert_eq!(balance(&server.client_with(&account.api_key)), "0", "{language:?}");
    }
    site.verify();
}
