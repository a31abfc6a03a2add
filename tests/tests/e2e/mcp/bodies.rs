//! Tools of routes that take a body, with every official client: the schema, the request, its cost, and refusals.

use metering_tests::mcp::{Agent, Sdk, Session};
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::mcp::{credits, for_each_client};
use crate::support::script::{Script, chunk, chunked, json_response, last_chunk};
use crate::support::wire::balance;

/// The body of a request: what the upstream is to send, and more that a schema checks.
fn schema() -> Value {
    json!({"type": "object", "required": ["steps", "model"], "properties": {
        "steps": {"type": "array"},
        "model": {"type": "string", "enum": ["small", "large"], "description": "Which model answers"},
        "options": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}}})
}

fn catalogue() -> String {
    let price =
        json!({"max": "0.5", "units": {"tokens": "0.001"}, "report": {"json": {"tokens": "/usage/total_tokens"}}});
    let route = |path: &str, more: Value| {
        let mut route = json!({"path": path, "method": "POST", "metered": true});
        route.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        route
    };
    json!({"market": "TEST", "version": 1, "endpoints": [
        route("/v1/chat", json!({"price": price, "request": {"schema": schema()}})),
        route("/v1/events", json!({"price": price, "sse": true, "request": {"schema": schema()}})),
        route("/v1/any", json!({"price": "0.25"})),
    ]})
    .to_string()
}

fn tool(session: &Session, name: &str) -> Value {
    session.tools().into_iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no tool {name}"))
}

#[test]
fn tools_of_post_routes_send_their_body() {
    let (site, upstream) = (Site::verified(), Script::start());
    let file = site.write("bodies.json", &catalogue());
    let server = site.server().args(["--upstream", &upstream.url(), "--catalogue", file.to_str().unwrap()]).start();
    for_each_client(|agent, transport| {
        let session = agent.connect(&server, transport, &site.account("1").api_key);
        use_tools(&session, &upstream);
        session.close();
    });
    for agent in Sdk::ALL.into_iter().filter_map(Agent::start) {
        let url = format!("http://{}", server.address());
        let (key, home) = (site.account("1").api_key, site.path("client").display().to_string());
        let environment =
            [("METERING_CLIENT_URL", &*url), ("METERING_CLIENT_API_KEY", &*key), ("METERING_CLIENT_HOME", &*home)];
        let session = agent.connect_to_program(&["mcp"], &environment).unwrap();
        use_tools(&session, &upstream);
        session.close();
    }
    drop(server);
}

/// Calls each tool, with an account of one credit.
#[track_caller]
fn use_tools(session: &Session, upstream: &Script) {
    let response = json_response(r#"{"text": "hello", "usage": {"total_tokens": 12}}"#);
    let events = [
        chunked("Content-Type: text/event-stream\r\n"),
        chunk("data: {\"text\": \"hel\"}\n\n"),
        chunk("data: {\"text\": \"lo\", \"usage\": {\"total_tokens\": 40}}\n\n"),
        last_chunk(""),
    ];
    let chat = tool(session, "bds_v1_chat");
    let (input, shown) = (&chat["inputSchema"], &chat["inputSchema"]["properties"]["body"]);
    assert_eq!(input["required"], json!(["body"]), "{chat}");
    assert_eq!((&shown["properties"], &shown["required"]), (&schema()["properties"], &schema()["required"]), "{chat}");
    let description = chat["description"].as_str().unwrap();
    assert!(description.contains("up to 0.5 credits: tokens 0.001 each"), "{description}");
    let any = tool(session, "bds_v1_any");
    assert_eq!(
        (&any["inputSchema"]["required"], &any["inputSchema"]["properties"]["body"]["type"]),
        (&Value::Null, &json!("object"))
    );

    // A response whose head has its cost.
    let body = json!({"model": "small", "steps": [response], "options": {"n": 2}});
    let result = session.call("bds_v1_chat", &json!({"body": body})).expect_success();
    assert_eq!(result["data"], json!({"text": "hello", "usage": {"total_tokens": 12}}));
    assert_eq!(
        (credits(&result["credits_charged"]), credits(&result["credit_balance"])),
        ("0.012".into(), "0.988".into())
    );
    let head = upstream.last_head();
    assert!(head.starts_with("post /v1/chat ") && head.contains("content-type: application/json"), "{head}");

    // A stream that was read to its end: its cost is queried.
    let body = json!({"model": "large", "steps": events});
    let result = session.call("bds_v1_events", &json!({"body": body})).expect_success();
    assert_eq!((&result["data"]["count"], &result["data"]["ended_by"]), (&json!(2), &json!("end")), "{result}");
    assert_eq!(result["data"]["events"][1]["data"]["text"], "lo", "{result}");
    assert_eq!(
        (credits(&result["credits_charged"]), credits(&result["credit_balance"])),
        ("0.04".into(), "0.948".into())
    );
    assert_eq!(result.get("credits_held"), None, "{result}");

    // A call that was not settled yet: the held amount, and the id to look it up with, unless the service was faster.
    let result = session.call("bds_v1_events", &json!({"body": body, "max_events": 1})).expect_success();
    assert_eq!((&result["data"]["count"], &result["data"]["ended_by"]), (&json!(1), &json!("count")), "{result}");
    let is_known = result["credits_charged"] == 0.04;
    assert!(is_known || result["credits_held"] == 0.5 && result["request_id"].is_string(), "{result}");

    // Without a declaration, a body is optional.
    for arguments in [json!({"body": {"steps": [response]}}), json!({"body": {"steps": [json_response("[]")]}})] {
        let result = session.call("bds_v1_any", &arguments).expect_success();
        assert_eq!(credits(&result["credits_charged"]), "0.25", "{result}");
    }
}

#[test]
fn body_that_does_not_fit_is_a_tool_error_and_costs_nothing() {
    let (site, upstream) = (Site::verified(), Script::start());
    let account = site.account("1");
    let file = site.write("bodies.json", &catalogue());
    let server = site.server().args(["--upstream", &upstream.url(), "--catalogue", file.to_str().unwrap()]).start();
    // tool, arguments, the field that the error names
    let table = [
        ("bds_v1_chat", json!({}), "body"),
        ("bds_v1_chat", json!({"body": null}), "body"),
        ("bds_v1_chat", json!({"body": {"model": "small"}}), "body"),
        ("bds_v1_chat", json!({"body": {"model": "o1-pro", "steps": []}}), "/model"),
        ("bds_v1_chat", json!({"body": {"model": "small", "steps": [], "options": {"n": 0}}}), "/options/n"),
        ("bds_v1_events", json!({"body": {"model": 1, "steps": []}}), "/model"),
        ("bds_v1_chat", json!({"body": {"model": "small", "steps": []}, "model": "small"}), "model"),
        ("bds_v1_any", json!({"body": [1]}), "body"),
    ];
    for_each_client(|agent, transport| {
        let session = agent.connect(&server, transport, &account.api_key);
        for (tool, arguments, field) in &table {
            let error = session.call(tool, arguments).expect_error();
            assert_eq!(error["error"], "invalid_parameter", "{tool} {arguments}: {error}");
            assert!(error["fields"][field].is_string(), "{tool} {arguments}: {error}");
        }
    });
    assert_eq!(balance(&server.client_with(&account.api_key)), "1");
    drop(server);
}
