//! Signed receipts of tool calls: requested in `_meta` or by the header `Prefer`, and returned in `_meta`.

use std::sync::Arc;

use metering_client::Client;
use metering_client::tools::{Callers, McpServer, ToolSettings};
use metering_core::{ApiKey, ClientSource, SystemRandomness};
use rmcp::RoleClient;
use rmcp::model::{CallToolResult, RequestMetaObject};
use rmcp::service::RunningService;
use serde_json::{Value, json};

use crate::calls::OverHttp;
use crate::script::{Script, response};
use crate::session::{Session, connect, error, request, success, toolbox};

const CALL: &str = "bds_mpp_ethPrice";
const META: &str = "dev.metering/receipt";
const RECEIPT: (&str, &str) = ("metering-receipt", "a.0-1..b.c.d");

/// Calls the tool with this `_meta`.
async fn call(mcp: &RunningService<RoleClient, ()>, meta: Value) -> CallToolResult {
    let Value::Object(meta) = meta else { panic!("_meta is an object") };
    let mut call = request(CALL, json!({}));
    call.meta = Some(RequestMetaObject::from(meta));
    mcp.call_tool(call).await.unwrap()
}

fn receipt(result: &CallToolResult) -> Option<&str> {
    result.meta.as_ref()?.get(META)?.as_str()
}

/// Whether each request since the last call requests a receipt.
fn asked(script: &Script) -> Vec<bool> {
    let asks = |request: &http::Request<bytes::Bytes>| {
        request.headers().get("prefer").is_some_and(|preference| preference == "metering-receipt")
    };
    script.requests().iter().map(asks).collect()
}

#[tokio::test]
async fn a_call_asks_in_meta_or_by_the_header_of_its_request() {
    let key = ApiKey::generate(&SystemRandomness);
    // the header `Prefer`, `_meta`, whether the call requests one
    let table = [
        (None, json!({META: true}), true),
        (None, json!({META: null, "progressToken": 7}), false),
        (None, json!({}), false),
        (Some("wait=5, metering-receipt"), json!({}), true),
        (Some("metering-receipt"), json!({META: false}), false),
        (Some("respond-async"), json!({META: true}), true),
    ];
    for (preference, meta, expected) in table {
        let script = Script::default().then(response(200, &[RECEIPT], "{}"));
        let client = Client::new(Arc::new(script.clone()), ClientSource::Direct);
        let server = McpServer::new(toolbox(), Callers::PerRequest(client), ToolSettings::default());
        let bearer = ("authorization", format!("Bearer {}", key.expose()));
        let preferred = preference.map(|preference| ("prefer", preference.to_owned()));
        let mcp = connect(OverHttp { server, headers: [bearer].into_iter().chain(preferred).collect() }).await;
        let result = call(&mcp, meta.clone()).await;
        assert_eq!(asked(&script), [expected], "{preference:?} {meta}");
        // A receipt in the response is passed on: some routes and accounts get one unasked.
        assert_eq!(receipt(&result), Some(RECEIPT.1));
    }
}

#[tokio::test]
async fn a_refund_has_its_receipt_and_a_response_without_one_has_none() {
    let refused = r#"{"error":"upstream_timeout","message":"Refunded."}"#;
    let script = Script::default().then(response(504, &[RECEIPT], refused)).then(response(200, &[], "{}"));
    let session = Session::start(&script).await;
    let result = call(&session.mcp, json!({META: true})).await;
    assert_eq!((&error(&result)["error"], receipt(&result)), (&json!("upstream_timeout"), Some(RECEIPT.1)));
    assert_eq!(call(&session.mcp, json!({META: true})).await.meta, None, "the service signs none");
}

#[tokio::test]
async fn a_cost_that_is_known_later_comes_with_its_receipt() {
    const ID: &str = "req_0123456789abcdef0123456789abcdef";
    let held = [("x-bds-credit-balance", "1.5"), ("x-bds-credit-held", "0.5"), ("x-bds-request-id", ID)];
    let settled = json!({"id": ID, "state": "captured", "held": 0, "charged": 0.02, "released": 0.48,
        "settled_by": "report", "route_template": "/x", "http_method": "GET", "request_path": "/x",
        "created_at": "2026-11-29T09:00:00Z", "expires_at": "2026-11-29T09:01:00Z", "settled_at": "2026-11-29T09:00:01Z",
        "explanation": null, "upstream": null, "receipt": RECEIPT.1});
    let script = Script::default().then(response(200, &held, "{}")).then(response(200, &[], settled.to_string()));
    let session = Session::start(&script).await;
    let result = call(&session.mcp, json!({META: true})).await;
    assert_eq!((&success(&result)["credits_charged"], receipt(&result)), (&json!(0.02), Some(RECEIPT.1)));
    assert_eq!(asked(&script), [true, true]);
}

#[tokio::test]
async fn anything_else_than_true_or_false_is_refused_before_it_is_sent() {
    let script = Script::default();
    let session = Session::start(&script).await;
    for wrong in [json!("true"), json!(1), json!({})] {
        let result = call(&session.mcp, json!({META: wrong})).await;
        assert_eq!(error(&result)["error"], "validation_failed");
    }
    assert!(script.requests().is_empty());
}
