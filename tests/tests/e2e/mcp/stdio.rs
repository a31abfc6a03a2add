//! `metering mcp`: the same tools for local clients, over standard input and output.

use std::io::Write;
use std::process::{Command, Stdio};

use metering_tests::mcp::{Agent, Sdk};
use metering_tests::program::program;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::mcp::http::{post, streamable_session};
use crate::mcp::{BASE_TOOL, STREAM_TOOL, charged, credits, expected_tools, selling};
use crate::support::wire::{BASE_CALL, CREDIT, amount, balance, usage_events};

/// The variables that set service and key, and isolate the program from the settings of the user who runs the tests.
fn environment(site: &Site, server: &Server, api_key: &str) -> Vec<(&'static str, String)> {
    vec![
        ("METERING_CLIENT_URL", format!("http://{}", server.address())),
        ("METERING_CLIENT_API_KEY", api_key.to_owned()),
        ("METERING_CLIENT_HOME", site.path("client").display().to_string()),
    ]
}

fn connect(agent: &Agent, environment: &[(&'static str, String)]) -> metering_tests::mcp::Session {
    let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    agent.connect_to_program(&["mcp"], &environment).unwrap_or_else(|failure| panic!("{failure:?}"))
}

#[test]
fn both_official_clients_use_every_tool_of_a_local_server() {
    let site = Site::verified();
    let server = site.server().set("METERING_SAMPLE__BLOCK_TIME", "200ms").start();
    for sdk in Sdk::ALL {
        let account = site.account("1");
        let Some(agent) = Agent::start(sdk) else { return };
        let session = connect(&agent, &environment(&site, &server, &account.api_key));
        let tools = expected_tools();
        assert_eq!(session.tools().len(), tools.len() + 2);
        let mut left = CREDIT - BASE_CALL;
        let block = charged(session.call(BASE_TOOL, &json!({})), BASE_CALL, left);
        for tool in &tools {
            left -= tool.price;
            let data = charged(session.call(&tool.name, &tool.arguments(&block)), tool.price, left);
            assert!(data["sample"] == true || data["count"] == 2, "{}: {data}", tool.name);
        }
        let own = session.call("get_credit_balance", &json!({})).expect_success();
        assert_eq!(credits(&own["credit_balance"]), amount(left));
        let error = session.call(STREAM_TOOL, &json!({"max_events": 0})).expect_error();
        assert_eq!(error["error"], "invalid_parameter", "{error}");
        // The key is revoked in mid-session. A local server cannot report it by an HTTP status.
        let issued = site.admin_json(&["account", "rotate-key", &account.org_id]);
        let error = session.call(BASE_TOOL, &json!({})).expect_error();
        assert_eq!(error["error"], "unauthorized", "{error}");
        session.close();
        let client = server.client_with(issued["api_key"].as_str().unwrap());
        assert_eq!(usage_events(&client), u64::try_from(tools.len() + 1).unwrap());
        let usage = client.get("/credits/usage?limit=100").expect(200).json();
        let mut calls = usage["transactions"].as_array().unwrap().iter().filter(|entry| entry["type"] == "usage");
        assert!(calls.all(|entry| entry["client_source"] == "mcp"), "{usage}");
    }
}

#[test]
fn exhausted_credits_are_a_tool_error_of_a_local_server() {
    let site = Site::new();
    let account = site.account("0");
    let server = site.server().args(selling(&site)).start();
    let Some(agent) = Agent::start(Sdk::TypeScript) else { return };
    let session = connect(&agent, &environment(&site, &server, &account.api_key));
    let error = session.call(BASE_TOOL, &json!({})).expect_error();
    assert_eq!(error["error"], "insufficient_credits", "{error}");
    assert!(error["plans"].as_array().is_some_and(|plans| !plans.is_empty()), "{error}");
    let _ = site.admin_json(&["account", "grant", &account.org_id, "--credits", "1"]);
    let _ = charged(session.call(BASE_TOOL, &json!({})), BASE_CALL, CREDIT - BASE_CALL);
    // An unreachable service is reported with its address, because the caller configured it.
    let address = server.address().to_string();
    server.kill();
    let error = session.call(BASE_TOOL, &json!({})).expect_error();
    assert_eq!(error["error"], "service_unreachable", "{error}");
    assert!(error["message"].as_str().unwrap().contains(&address), "{error}");
}

#[test]
fn only_messages_are_printed_and_end_of_input_exits() {
    let (site, account, server) = Site::serving("1");
    let variables = environment(&site, &server, &account.api_key);
    let mut command = Command::new(program("metering"));
    command.arg("mcp").envs(variables).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for message in [crate::mcp::http::initialize(), initialized, crate::mcp::http::call(2, BASE_TOOL)] {
        writeln!(input, "{message}").unwrap();
    }
    let started = std::time::Instant::now();
    while balance(&server.client_with(&account.api_key)) == "1" {
        assert!(started.elapsed().as_secs() < 60, "the call was not made");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let lines: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["jsonrpc"] == "2.0"), "{lines:?}");
    assert!(lines.iter().any(|line| line["id"] == 1 && line["result"]["serverInfo"].is_object()), "{lines:?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!errors.contains(&account.api_key), "{errors}");
}

#[test]
fn missing_key_is_explained_and_nothing_starts() {
    let site = Site::new();
    let server = site.server().start();
    let mut command = Command::new(program("metering"));
    let variables = environment(&site, &server, "").into_iter().filter(|(name, _)| !name.ends_with("API_KEY"));
    let output = command.arg("mcp").env_clear().envs(variables).stdin(Stdio::null()).output().unwrap();
    assert_ne!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("metering signup"), "{output:?}");
}

#[test]
fn hosted_and_local_tools_share_the_operators_prefix() {
    let (site, account, server) = Site::serving_with("1", |server| server.set("METERING_MCP__TOOL_PREFIX", "acme_"));
    let client = server.client_with(&account.api_key);
    let session = streamable_session(&client);
    let listed = post(&session, "/mcp", &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).expect(200).json();
    let names: Vec<_> = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert!(names.contains(&json!("acme_mpp_ethPrice")) && !names.contains(&json!(BASE_TOOL)), "{names:?}");
    assert_eq!(client.get("/endpoints.json").expect(200).header("mcp-tool-prefix"), Some("acme_"));
    // A local server gets the prefix.
    let Some(agent) = Agent::start(Sdk::Python) else { return };
    let local = connect(&agent, &environment(&site, &server, &account.api_key));
    let local_names: Vec<_> = local.tools().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(local_names, names);
    let refused = site.server().set("METERING_MCP__TOOL_PREFIX", "acme data").run();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.to_lowercase().contains("mcp") && refused.stderr.contains("acme_"), "{}", refused.stderr);
}
