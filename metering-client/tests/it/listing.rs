//! Which tools there are, and how they are described to agents.

use std::sync::Arc;

use metering_client::tools::{Callers, McpServer, ToolSettings, Toolbox};
use metering_client::{Client, Transport};
use metering_core::{ApiKey, Catalogue, ClientSource, SystemRandomness};
use rmcp::model::Tool;
use serde_json::{Value, json};

use crate::script::Script;
use crate::session::{Session, default_catalogue, toolbox};

async fn tools() -> Vec<Tool> {
    Session::start(&Script::default()).await.mcp.list_all_tools().await.unwrap()
}

async fn tool(name: &str) -> Tool {
    tools().await.into_iter().find(|tool| tool.name == name).unwrap_or_else(|| panic!("no tool {name}"))
}

#[tokio::test]
async fn every_route_of_the_default_catalogue_is_a_tool() {
    let tools = tools().await;
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    let expected = [
        "bds_mpp_pool_pool_address_metadata",
        "bds_mpp_token_token_address_pools",
        "bds_mpp_ethPrice",
        "bds_mpp_ethPrice_block_number",
        "bds_mpp_token_price_token_address_pool_address",
        "bds_mpp_token_price_token_address_pool_address_block_number",
        "bds_mpp_snapshot_base_all_pools_token_address",
        "bds_mpp_snapshot_base_pool_address",
        "bds_mpp_snapshot_base_pool_address_block_number",
        "bds_mpp_snapshot_trades_pool_address",
        "bds_mpp_snapshot_trades_pool_address_block_number",
        "bds_mpp_snapshot_allTrades",
        "bds_mpp_snapshot_allTrades_block_number",
        "bds_mpp_stream_allTrades",
        "bds_mpp_tokenPrices_all_token_address",
        "bds_mpp_tokenPrices_all_token_address_block_number",
        "bds_mpp_tradeVolumeAllPools_token_address_time_interval",
        "bds_mpp_tradeVolume_pool_address_time_interval",
        "bds_mpp_poolTrades_pool_address_start_timestamp",
        "bds_mpp_timeSeries_token_address_pool_address_time_interval",
        "bds_mpp_dailyActiveTokens",
        "bds_mpp_dailyActivePools",
        "get_credit_balance",
        "list_plans",
    ];
    assert_eq!(names, expected);
    assert_eq!(default_catalogue().routes().len() + 2, tools.len());
    assert_eq!(toolbox().len(), tools.len());
}

#[tokio::test]
async fn input_schemas_are_the_routes_parameters() {
    // tool, properties with their types, the required ones
    type Properties = &'static [(&'static str, &'static str)];
    let table: [(&str, Properties, &[&str]); 6] = [
        ("bds_mpp_ethPrice", &[], &[]),
        ("bds_mpp_snapshot_allTrades_block_number", &[("block_number", "integer")], &["block_number"]),
        (
            "bds_mpp_token_price_token_address_pool_address_block_number",
            &[("token_address", "string"), ("pool_address", "string"), ("block_number", "integer")],
            &["token_address", "pool_address", "block_number"],
        ),
        (
            "bds_mpp_dailyActivePools",
            &[("page", "integer"), ("size", "integer"), ("metadata", "boolean"), ("time_interval", "integer")],
            &[],
        ),
        ("bds_mpp_stream_allTrades", &[("from_epoch", "integer"), ("max_events", "integer")], &[]),
        ("get_credit_balance", &[], &[]),
    ];
    for (name, properties, required) in table {
        let schema = Value::Object(tool(name).await.input_schema.as_ref().clone());
        assert_eq!(schema["type"], "object", "{name}");
        assert_eq!(schema["additionalProperties"], false, "{name}");
        // All tools that cost something have a limit on it.
        let bounds = usize::from(name != "get_credit_balance");
        assert_eq!(schema["properties"].as_object().unwrap().len(), properties.len() + bounds, "{name}");
        assert_eq!(schema["properties"]["max_cost"].is_object(), bounds == 1, "{name}");
        for (property, kind) in properties {
            assert_eq!(schema["properties"][property]["type"], *kind, "{name} {property}");
            assert!(schema["properties"][property]["description"].is_string(), "{name} {property}");
        }
        let listed = schema.get("required").map_or(json!([]), Clone::clone);
        assert_eq!(listed, json!(required), "{name}");
    }
    let bound = &tool("bds_mpp_stream_allTrades").await.input_schema["properties"]["max_events"];
    assert_eq!((&bound["minimum"], &bound["maximum"], &bound["default"]), (&json!(1), &json!(50), &json!(5)));
}

#[tokio::test]
async fn descriptions_state_the_price() {
    // tool, what its description contains
    let table = [
        (
            "bds_mpp_ethPrice",
            "ETH price at the latest finalized block. Price: 5 × 1/7200 credit (0.0006944444 credits, rounded) per call.\nRoute: GET /mpp/ethPrice",
        ),
        ("bds_mpp_ethPrice_block_number", "Price: 10 × 1/7200 credit (0.0013888889 credits, rounded) per call."),
        (
            "bds_mpp_snapshot_allTrades_block_number",
            "Price: 1 × 1/7200 credit (0.0001388889 credits, rounded) per call.",
        ),
        (
            "bds_mpp_timeSeries_token_address_pool_address_time_interval",
            "by `time_interval`, how far it looks back: up to 600 seconds 5 × 1/7200 credit (0.0006944444 credits, rounded), up to 1800 seconds 10 × 1/7200 credit",
        ),
        (
            "bds_mpp_timeSeries_token_address_pool_address_time_interval",
            "up to 604800 seconds 5120 × 1/7200 credit (0.7111111111 credits, rounded); beyond that 10240 × 1/7200 credit (1.4222222222 credits, rounded).",
        ),
        ("bds_mpp_stream_allTrades", "per call, however many events it returns."),
        ("get_credit_balance", "Free of charge."),
        ("list_plans", "Free of charge."),
    ];
    for (name, part) in table {
        let description = tool(name).await.description.unwrap();
        assert!(description.contains(part), "{name}: {description}");
    }
}

#[tokio::test]
async fn priced_tools_are_not_marked_read_only() {
    for tool in tools().await {
        let hints = tool.annotations.unwrap();
        let free = matches!(&*tool.name, "get_credit_balance" | "list_plans");
        assert_eq!(hints.read_only_hint, Some(free), "{}", tool.name);
        assert_eq!(hints.destructive_hint, (!free).then_some(false), "{}", tool.name);
        assert_eq!(hints.idempotent_hint, (!free).then_some(false), "{}", tool.name);
    }
}

#[tokio::test]
async fn output_schemas_take_results_and_errors() {
    // Some clients validate structured content against the schema even if it is an error.
    for tool in tools().await {
        let schema = Value::Object(tool.output_schema.unwrap().as_ref().clone());
        let member = match &*tool.name {
            "get_credit_balance" => "credit_balance",
            "list_plans" => "plans",
            _ => "data",
        };
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["anyOf"], json!([{"required": [member]}, {"required": ["error", "message"]}]));
        assert!(schema["properties"][member].is_object(), "{}", tool.name);
    }
}

#[tokio::test]
async fn server_info_names_it_and_explains_errors() {
    let session = Session::start(&Script::default()).await;
    let info = session.mcp.peer_info().unwrap();
    assert_eq!(info.server_info.as_ref().unwrap().name, "metering");
    assert!(info.capabilities.tools.is_some());
    let instructions = info.instructions.as_deref().unwrap();
    for word in [
        "1/7200",
        "insufficient_credits",
        "topup_url",
        "rate_limited",
        "retry_after_sec",
        "get_credit_balance",
        "max_cost",
    ] {
        assert!(instructions.contains(word), "{word}");
    }
}

fn catalogue(routes: &[(&str, &str, bool)]) -> Catalogue {
    let routes: Vec<_> = routes
        .iter()
        .map(|(method, path, metered)| {
            let params: Vec<_> = path
                .split('/')
                .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
                .map(|name| json!({"name": name, "in": "path", "type": "string", "required": true}))
                .collect();
            json!({"method": method, "path": path, "metered": metered, "params": params})
        })
        .collect();
    Catalogue::from_json(&json!({"market": "M", "version": 1, "endpoints": routes}).to_string()).unwrap()
}

#[test]
fn methods_of_one_path_are_separate_tools_and_free_routes_none() {
    let routes = [("GET", "/a/{b}", true), ("POST", "/a/{b}", true), ("DELETE", "/c", true), ("GET", "/free", false)];
    let toolbox = Toolbox::new(&catalogue(&routes)).unwrap();
    let names: Vec<_> = toolbox.names().collect();
    assert_eq!(names, ["bds_a_b", "bds_a_b_post", "bds_c", "get_credit_balance", "list_plans"]);
    assert!(!toolbox.is_empty());
}

#[test]
fn two_routes_of_one_name_are_refused_with_both_named() {
    let table = [
        (("GET", "/x/{y}"), ("GET", "/x/y")),
        (("GET", "/a/b_c"), ("GET", "/a_b/c")),
        (("GET", "/a.b"), ("POST", "/a/b")),
    ];
    for (first, second) in table {
        let clash = Toolbox::new(&catalogue(&[(first.0, first.1, true), (second.0, second.1, true)])).unwrap_err();
        let text = clash.to_string();
        for (method, path) in [first, second] {
            assert!(text.contains(&format!("{method} {path}")), "{text}");
        }
    }
}

/// Path and names; all routes are metered `GET`s.
fn names(paths: &[&str]) -> Vec<String> {
    let routes: Vec<_> = paths.iter().map(|path| ("GET", *path, true)).collect();
    let toolbox = Toolbox::new(&catalogue(&routes)).unwrap();
    toolbox.names().take(paths.len()).map(str::to_owned).collect()
}

#[test]
fn names_have_at_most_sixty_characters_and_do_not_clash() {
    let long = "/mpp/timeSeries/{token_address}/{pool_address}/{time_interval}/{step_seconds}";
    let readable = "bds_mpp_timeSeries_token_address_pool_address_time_interval";
    assert_eq!(names(&[long]), [readable]);
    // A longer name never takes a name that fits, wherever it is in the catalogue.
    let shorter = "/mpp/timeSeries/{token_address}/{pool_address}/{time_interval}";
    let [first, second] = &*names(&[long, shorter]) else { panic!() };
    assert_eq!(second, readable);
    assert!(first.starts_with("bds_mpp_timeSeries_token_address_pool_address_") && first != readable, "{first}");
    assert_eq!(names(&[shorter, long]), [second.clone(), first.clone()]);
    // Neither of two gets the name that both would be shortened to.
    let all = names(&[long, &format!("{long}/{{page}}"), &format!("{long}/and_a_literal_segment")]);
    assert!(all.iter().all(|name| name.len() <= 60 && name != readable), "{all:?}");
    assert!(all[0] != all[1] && all[1] != all[2], "{all:?}");
}

#[test]
fn an_operators_prefix_may_be_empty_but_not_hide_a_free_tool() {
    let with_prefix =
        |path: &str, prefix: &str| Toolbox::with_prefix(&catalogue(&[("GET", path, true)]), prefix.parse().unwrap());
    assert_eq!(with_prefix("/price", "").unwrap().names().next(), Some("price"));
    assert_eq!(with_prefix("/price", "acme-").unwrap().names().next(), Some("acme-price"));
    let clash = with_prefix("/list/plans", "").unwrap_err().to_string();
    assert!(clash.contains("GET /credits/plans and GET /list/plans"), "{clash}");
}

#[test]
fn no_key_is_shown_by_debug() {
    let key = ApiKey::generate(&SystemRandomness);
    let transport: Arc<dyn Transport> = Arc::new(Script::default());
    let client = Client::new(transport, ClientSource::Mcp).with_key(key.clone());
    let server = McpServer::new(toolbox(), Callers::One(client.clone()), ToolSettings::default());
    for shown in [format!("{client:?}"), format!("{server:?}"), format!("{:#?}", Callers::PerRequest(client.clone()))] {
        assert!(!shown.contains(&key.expose()[8..20]), "{shown}");
    }
    assert_eq!(ToolSettings::default().stream_wait.as_secs(), 45);
}
