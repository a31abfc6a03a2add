//! Responses to clients through the gateway: complete responses, streams with their usage, and readable refusals.

use metering_tests::litellm;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::llm::setup::{COMPLETION_TOKENS, setup, text};

#[test]
fn clients_cannot_turn_the_usage_of_streams_off() {
    metering_tests::skip_if!(litellm::is_skipped());
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
    metering_tests::skip_if!(litellm::is_skipped());
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
