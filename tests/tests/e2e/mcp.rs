//! Helpers for tests of the MCP server: the tools that the default catalogue must produce, derived here independently,
//! and every combination of the official clients and transports.

mod bodies;
mod fairness;
pub(crate) mod http;
mod keys;
mod limits;
mod oauth;
mod restricted_keys;
mod separate_process;
mod stdio;
mod tool_errors;
mod tools;

use std::time::{Duration, Instant};

use metering_core::Credits;
use metering_tests::mcp::{Agent, Sdk, ToolResult, Transport};
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::support::wire::{BASE_CALL, amount};

/// The tool of [`crate::support::wire::BASE`], which takes no arguments and costs one base call.
pub(crate) const BASE_TOOL: &str = "bds_mpp_snapshot_allTrades";
/// The tool of [`crate::support::wire::STREAM`].
pub(crate) const STREAM_TOOL: &str = "bds_mpp_stream_allTrades";

/// How long to wait for an expected event.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A metered route of the default catalogue, and the tool that it must produce.
pub(crate) struct ExpectedTool {
    pub(crate) name: String,
    pub(crate) is_stream: bool,
    /// Name, type, and whether it is required.
    pub(crate) params: Vec<(String, String, bool)>,
    /// The price of a call with [`ExpectedTool::arguments`], in atoms.
    pub(crate) price: i64,
    path: String,
}

/// The metered routes, read from the catalogue file.
pub(crate) fn expected_tools() -> Vec<ExpectedTool> {
    let text = include_str!("../../../metering-sample/routes.json");
    let catalogue: Value = serde_json::from_str(text).unwrap();
    let routes = catalogue["endpoints"].as_array().unwrap().iter();
    routes.filter(|route| route["metered"] == true).map(expected).collect()
}

fn expected(route: &Value) -> ExpectedTool {
    let path = route["path"].as_str().unwrap().to_owned();
    let mut words: Vec<_> = path.split(['/', '{', '}']).filter(|word| !word.is_empty()).collect();
    // A longer name lacks its last parameters.
    while "bds_".len() + words.join("_").len() > 60 {
        words.pop();
    }
    let params = route["params"].as_array().unwrap().iter().map(|param| {
        let text = |name: &str| param[name].as_str().unwrap().to_owned();
        (text("name"), text("type"), param["required"] == true)
    });
    let weight = route["credit_weight"].as_i64().unwrap();
    let price = match route["billing_modifier"]["type"].as_str() {
        None => weight * BASE_CALL,
        // The sample arguments look back 1,200 seconds: the second tier.
        Some("lookback_multiplier") => weight * BASE_CALL * 2,
        // A hundredth of a credit.
        Some(_) => 72_000_000,
    };
    ExpectedTool {
        name: format!("bds_{}", words.join("_")),
        is_stream: route["sse"] == true,
        params: params.collect(),
        price,
        path,
    }
}

impl ExpectedTool {
    /// Arguments for which there is sample data. `block` is final.
    pub(crate) fn arguments(&self, block: &Value) -> Value {
        let (number, time) = (&block["block_number"], block["block_timestamp"].as_i64().unwrap());
        let value = |name: &str| match name {
            "token_address" => json!("0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"),
            "pool_address" => json!("0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640"),
            "block_number" | "from_epoch" => number.clone(),
            "time_interval" => json!(1_200),
            "step_seconds" => json!(60),
            "start_timestamp" => json!(time - 20),
            "end_timestamp" => json!(time),
            "page" => json!(1),
            "size" => json!(3),
            "metadata" => json!(true),
            other => panic!("unknown parameter {other}"),
        };
        let mut arguments: Value = self.params.iter().map(|(name, ..)| (name.clone(), value(name))).collect();
        if self.is_stream {
            arguments["max_events"] = json!(2);
        }
        arguments
    }

    /// The target of the same HTTP request, for routes that have only path parameters.
    pub(crate) fn target(&self, arguments: &Value) -> String {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let members = arguments.as_object().unwrap();
        members.iter().fold(self.path.clone(), |path, (name, value)| path.replace(&format!("{{{name}}}"), &text(value)))
    }
}

/// Runs a test with an agent of each SDK and each transport; the agents start in parallel beforehand.
pub(crate) fn for_each_client(mut test: impl FnMut(&Agent, Transport)) {
    let agents = Sdk::ALL.map(Agent::start);
    for agent in agents.iter().flatten() {
        for transport in Transport::ALL {
            test(agent, transport);
        }
    }
}

/// An amount of credits in a JSON document, in the usual format.
#[track_caller]
pub(crate) fn credits(value: &Value) -> String {
    let number = value.as_f64().unwrap_or_else(|| panic!("not an amount: {value}"));
    let text = format!("{number:.10}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Asserts that a call succeeded at `price` with `left` (atoms) as the remaining balance, and returns the data.
#[track_caller]
pub(crate) fn charged(result: ToolResult, price: i64, left: i64) -> Value {
    let text: Value = serde_json::from_str(&result.text).unwrap_or_else(|error| panic!("{error} in {}", result.text));
    let mut structured = result.expect_success();
    assert_eq!(text, structured, "the text equals the structured content");
    assert_eq!(credits(&structured["credits_charged"]), amount(price), "{structured}");
    assert_eq!(credits(&structured["credit_balance"]), amount(left), "{structured}");
    structured["data"].take()
}

/// Puts a plan on sale, and returns the server's flags for it. The chain has no source, so the plan is only listed.
pub(crate) fn selling(site: &Site) -> [String; 2] {
    let plans = json!([{"id": "coin", "chain_id": 8453, "token_symbol": "ETH", "payment_kind": "native_value",
        "credits": 4, "token_amount": "0.0025", "token_decimals": 18, "label": "Coin"}]);
    let plans = site.write("plans.json", &plans.to_string());
    let imported = site.admin(&["plan", "import", plans.to_str().unwrap()]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let recipient = "0x00000000000000000000000000000000000000aa";
    let chain = format!("[chains.base]\nchain_id = 8453\nrecipient = '{recipient}'\n");
    let config = site.write("selling.toml", &chain);
    ["--config".to_owned(), config.display().to_string()]
}

/// A metric without labels, or the sum over its labels.
#[track_caller]
pub(crate) fn metric(server: &Server, name: &str) -> u64 {
    let metrics = server.client().get("/metrics").expect(200).text();
    let values = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map_or(rest, |(_, value)| value);
        value.strip_prefix(' ')?.trim().parse::<u64>().ok()
    });
    let values: Vec<_> = values.collect();
    assert!(!values.is_empty(), "no {name} in {metrics}");
    values.into_iter().sum()
}

/// Waits until the server has `count` MCP sessions.
#[track_caller]
pub(crate) fn wait_for_sessions(server: &Server, count: u64) {
    let started = Instant::now();
    loop {
        let open = metric(server, "metering_mcp_sessions");
        if open == count {
            return;
        }
        assert!(started.elapsed() < TIMEOUT, "{open} sessions, not {count}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn expected_tool_names_match_the_protocol() {
    let tools = expected_tools();
    assert_eq!(tools.len(), 22);
    assert!(tools.iter().any(|tool| tool.name == "bds_mpp_snapshot_allTrades_block_number"));
    assert!(tools.iter().any(|tool| tool.name == STREAM_TOOL && tool.is_stream && tool.price == 72_000_000));
    assert!(tools.iter().any(|tool| tool.name == BASE_TOOL && tool.params.is_empty() && tool.price == BASE_CALL));
    assert_eq!(credits(&json!(0.0001388889)), Credits::BASE_CALL.to_string());
    assert_eq!(credits(&json!(2)), "2");
}
