//! Every tool with every official client: the listing, the results, and the prices.

use std::collections::BTreeSet;

use metering_tests::mcp::{Agent, Sdk, Session, Transport};
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::mcp::{BASE_TOOL, ExpectedTool, STREAM_TOOL, charged, credits, expected_tools, for_each_client};
use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance};

#[test]
fn every_client_lists_all_tools() {
    let (_site, account, server) = Site::serving("1");
    for_each_client(|agent, transport| {
        let session = agent.connect(&server, transport, &account.api_key);
        assert_listing(&session);
        session.close();
    });
    assert_eq!(balance(&server.client_with(&account.api_key)), "1", "listing is free");
}

/// Asserts that names, schemas and descriptions match the catalogue.
#[track_caller]
fn assert_listing(session: &Session) {
    let tools = session.tools();
    let expected = expected_tools();
    let names: BTreeSet<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let routes = expected.iter().map(|tool| tool.name.as_str());
    assert_eq!(names, routes.chain(["get_credit_balance", "list_plans"]).collect());
    assert_eq!(tools.len(), names.len(), "no tool is listed twice");
    for tool in &tools {
        let expected = expected.iter().find(|expected| tool["name"] == expected.name.as_str());
        let description = tool["description"].as_str().unwrap();
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object", "{tool}");
        let Some(expected) = expected else {
            assert_eq!(schema["properties"].as_object().map_or(0, serde_json::Map::len), 0, "{tool}");
            continue;
        };
        assert!(description.contains(&amount(expected.price)), "the price is in the description: {description}");
        assert!(description.contains("credit"), "{description}");
        assert_schema(schema, expected);
    }
}

#[track_caller]
fn assert_schema(schema: &Value, expected: &ExpectedTool) {
    let mut required: BTreeSet<_> = schema["required"].as_array().into_iter().flatten().map(Value::to_string).collect();
    for (name, kind, is_required) in &expected.params {
        assert_eq!(schema["properties"][name]["type"], kind.as_str(), "{name}: {schema}");
        assert_eq!(required.remove(&Value::from(name.as_str()).to_string()), *is_required, "{name}: {schema}");
    }
    assert!(required.is_empty(), "{schema}");
    assert_eq!(schema["properties"]["max_cost"]["type"], "string", "{schema}");
    let more = if expected.is_stream { 2 } else { 1 };
    assert_eq!(schema["properties"].as_object().unwrap().len(), expected.params.len() + more, "{schema}");
    if expected.is_stream {
        let bound = &schema["properties"]["max_events"];
        let found = (bound["type"].as_str(), bound["default"].as_u64(), bound["maximum"].as_u64());
        assert_eq!(found, (Some("integer"), Some(5), Some(50)), "{schema}");
    }
}

#[test]
fn every_tool_returns_the_gateways_response_and_is_charged() {
    let (site, direct) = (Site::verified(), Site::new());
    let server = site.server().set("METERING_SAMPLE__BLOCK_TIME", "200ms").start();
    // The same responses from another server, whose books are not checked.
    let reference = direct.server().set("METERING_SAMPLE__BLOCK_TIME", "200ms").start();
    let reference = reference.client_with(&direct.account("100").api_key);
    let tools = expected_tools();
    for_each_client(|agent, transport| {
        let account = site.account("1");
        let session = agent.connect(&server, transport, &account.api_key);
        let mut left = CREDIT - BASE_CALL;
        let block = charged(session.call(BASE_TOOL, &json!({})), BASE_CALL, left);
        for tool in &tools {
            let arguments = tool.arguments(&block);
            left -= tool.price;
            let data = charged(session.call(&tool.name, &arguments), tool.price, left);
            if tool.is_stream {
                assert_stream(&data, 2);
                continue;
            }
            assert_eq!(data["sample"], true, "{}: {data}", tool.name);
            // Only responses for a given block are always the same.
            if arguments.get("block_number").is_some() {
                assert_eq!(data, reference.get(&tool.target(&arguments)).expect(200).json(), "{}", tool.name);
            }
        }
        let own = session.call("get_credit_balance", &json!({})).expect_success();
        assert_eq!((&own["org_id"], credits(&own["credit_balance"])), (&account.org_id.clone().into(), amount(left)));
        let plans = session.call("list_plans", &json!({})).expect_success();
        assert_eq!(plans, server.client().get("/credits/plans").expect(200).json());
        assert_charges(&site, &server.client_with(&account.api_key), left, &tools);
    });
}

#[track_caller]
fn assert_stream(data: &Value, count: usize) {
    let events = data["events"].as_array().unwrap_or_else(|| panic!("no events: {data}"));
    assert_eq!((events.len(), data["count"].as_u64()), (count, u64::try_from(count).ok()), "{data}");
    assert_eq!(data["ended_by"], "count", "{data}");
    for event in events {
        assert_eq!(event["event"], "block", "{event}");
        assert!(event["data"]["block_number"].is_u64(), "{event}");
    }
}

/// Asserts that the account was charged once for each tool, and one more time for the base tool, all through MCP.
#[track_caller]
fn assert_charges(site: &Site, client: &metering_tests::client::Client, left: i64, tools: &[ExpectedTool]) {
    assert_eq!(balance(client), amount(left));
    let usage = client.get("/credits/usage?limit=100").expect(200).json();
    let calls = usage["transactions"].as_array().unwrap().iter().filter(|entry| entry["type"] == "usage");
    let calls: Vec<_> = calls.collect();
    assert!(calls.iter().all(|entry| entry["client_source"] == "mcp"), "{usage}");
    let count: u64 = calls.iter().map(|entry| entry["calls"].as_u64().unwrap_or(1)).sum();
    assert_eq!(count, u64::try_from(tools.len() + 1).unwrap(), "{usage}");
    let routes: BTreeSet<_> = calls.iter().map(|entry| entry["route_template"].to_string()).collect();
    assert_eq!(routes.len(), tools.len(), "{usage}");
    site.verify();
}

#[test]
fn stream_tool_returns_after_its_events_or_timeout() {
    let site = Site::verified();
    let server =
        site.server().set("METERING_SAMPLE__BLOCK_TIME", "20ms").set("METERING_MCP__STREAM_WAIT", "30s").start();
    let slow = Site::new();
    let slow_server =
        slow.server().set("METERING_SAMPLE__BLOCK_TIME", "1h").set("METERING_MCP__STREAM_WAIT", "300ms").start();
    for_each_client(|agent, transport| {
        let account = site.account("1");
        let session = agent.connect(&server, transport, &account.api_key);
        // arguments, number of events
        for (index, (arguments, count)) in
            [(json!({}), 5), (json!({"max_events": 1}), 1), (json!({"max_events": 50}), 50)].into_iter().enumerate()
        {
            let left = CREDIT - 72_000_000 * i64::try_from(index + 1).unwrap();
            assert_stream(&charged(session.call(STREAM_TOOL, &arguments), 72_000_000, left), count);
        }
        let slow_account = slow.account("1");
        let session = agent.connect(&slow_server, transport, &slow_account.api_key);
        let data = charged(session.call(STREAM_TOOL, &json!({"max_events": 50})), 72_000_000, CREDIT - 72_000_000);
        assert_eq!(data["ended_by"], "time", "{data}");
    });
}

#[test]
fn invalid_arguments_are_tool_errors_and_cost_nothing() {
    let (_site, account, server) = Site::serving("1");
    let by_block = "bds_mpp_snapshot_allTrades_block_number";
    let metadata = "bds_mpp_pool_pool_address_metadata";
    // tool, arguments, field in the error
    let table = [
        (by_block, json!({}), "block_number"),
        (by_block, json!({"block_number": "soon"}), "block_number"),
        (by_block, json!({"block_number": 1.5}), "block_number"),
        (by_block, json!({"block_number": null}), "block_number"),
        (by_block, json!({"block_number": [1]}), "block_number"),
        (by_block, json!({"block_number": "1/../../ethPrice"}), "block_number"),
        (by_block, json!({"block_number": 1, "more": 2}), "more"),
        (metadata, json!({"pool_address": ""}), "pool_address"),
        (metadata, json!({"pool_address": ".."}), "pool_address"),
        (metadata, json!({"pool_address": "a/b"}), "pool_address"),
        (metadata, json!({"pool_address": 7}), "pool_address"),
        (BASE_TOOL, json!({"from_epoch": 1}), "from_epoch"),
        (STREAM_TOOL, json!({"max_events": 0}), "max_events"),
        (STREAM_TOOL, json!({"max_events": 51}), "max_events"),
        (STREAM_TOOL, json!({"max_events": "many"}), "max_events"),
        (STREAM_TOOL, json!({"from_epoch": "x"}), "from_epoch"),
        ("get_credit_balance", json!({"org_id": "org_other"}), "org_id"),
        ("list_plans", json!({"all": true}), "all"),
    ];
    for_each_client(|agent, transport| {
        let session = agent.connect(&server, transport, &account.api_key);
        for (tool, arguments, field) in &table {
            let error = session.call(tool, arguments).expect_error();
            assert_eq!(error["error"], "invalid_parameter", "{tool} {arguments}: {error}");
            assert!(error["fields"][field].is_string(), "{tool} {arguments}: {error}");
        }
        // An unknown tool is a protocol error or a tool error; the session continues.
        for unknown in ["bds_mpp_nothing", "", "get_credit_balance "] {
            if let Ok(result) = session.try_call(unknown, &json!({})) {
                assert!(result.is_error, "{unknown:?}: {result:?}");
            }
        }
        let own = session.call("get_credit_balance", &json!({})).expect_success();
        assert_eq!(credits(&own["credit_balance"]), "1");
    });
    assert_eq!(balance(&server.client_with(&account.api_key)), "1");
}

#[test]
fn upstream_errors_are_tool_errors_with_their_json() {
    let (_site, account, server) = Site::serving("1");
    let nowhere = "0x00000000000000000000000000000000000000aa";
    for_each_client(|agent, transport| {
        let session = agent.connect(&server, transport, &account.api_key);
        let before = balance(&server.client_with(&account.api_key));
        let error =
            session.call("bds_mpp_pool_pool_address_metadata", &json!({"pool_address": nowhere})).expect_error();
        let direct = server.client_with(&account.api_key).get(&format!("/mpp/pool/{nowhere}/metadata"));
        assert_eq!((direct.status, &error["error"]), (404, &direct.json()["error"]), "{error}");
        assert_eq!(error["message"], direct.json()["message"]);
        // The gateway accepted the request, so its cost is reported.
        assert_eq!(credits(&error["credits_charged"]), amount(BASE_CALL), "{error}");
        assert_ne!(balance(&server.client_with(&account.api_key)), before);
    });
}

#[test]
fn legacy_handshake_lists_the_same_tools() {
    let (_site, account, server) = Site::serving("1");
    let Some(agent) = Agent::start(Sdk::Python) else { return };
    for (index, transport) in Transport::ALL.into_iter().enumerate() {
        let session = agent.connect_with_handshake(&server, transport, &account.api_key);
        assert_listing(&session);
        let left = CREDIT - BASE_CALL * i64::try_from(index + 1).unwrap();
        let data = charged(session.call(BASE_TOOL, &json!({})), BASE_CALL, left);
        assert_eq!(data["sample"], true);
        session.close();
    }
    let _ = server.client_with(&account.api_key).get(BASE).expect(200);
}
