//! Tool calls that succeed: the request to the service, and the agent's result.

use std::sync::Arc;

use metering_client::Client;
use metering_client::tools::{Callers, McpServer, ToolSettings};
use metering_core::{ApiKey, ClientSource, SystemRandomness};
use rmcp::model::{CallToolRequestParams, CallToolResponse, ErrorCode, ServerConfig};
use rmcp::service::{RequestContext, ServiceError};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;

use crate::script::{Script, charged, response};
use crate::session::{Session, call, connect, error, request, success, text, toolbox};

fn header<'r>(request: &'r http::Request<bytes::Bytes>, name: &str) -> Option<&'r str> {
    request.headers().get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_call_is_a_request_with_key_and_source() {
    let script = Script::default().then(charged(r#"{"price":1}"#));
    let session = Session::start(&script).await;
    session.call("bds_mpp_ethPrice_block_number", json!({"block_number": 19_000_000})).await;
    let requests = script.requests();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!((request.method().as_str(), request.uri().to_string().as_str()), ("GET", "/mpp/ethPrice/19000000"));
    // `Authorization` is left to payments.
    assert_eq!((header(request, "authorization"), header(request, "x-api-key")), (None, Some(session.key.expose())));
    assert_eq!(header(request, "x-bds-client-source"), Some("mcp"));
    assert!(request.headers()["x-api-key"].is_sensitive());
    assert!(request.body().is_empty());
    script.all_closed().await;
}

#[tokio::test]
async fn a_tool_with_a_shortened_name_is_also_called_by_its_full_one() {
    let names = [
        "bds_mpp_timeSeries_token_address_pool_address_time_interval",
        "bds_mpp_timeSeries_token_address_pool_address_time_interval_step_seconds",
    ];
    for name in names {
        let script = Script::default().then(charged("{}"));
        let session = Session::start(&script).await;
        let arguments = json!({"token_address": "a", "pool_address": "b", "time_interval": 600, "step_seconds": 60});
        session.call(name, arguments).await;
        assert_eq!(script.requests()[0].uri().path(), "/mpp/timeSeries/a/b/600/60", "{name}");
    }
}

#[tokio::test]
async fn results_contain_response_and_charge_to_the_byte() {
    const CHARGE: &str = r#""credit_balance":1.9998611111,"credits_charged":0.0001388889"#;
    // body, the text's data
    let table = [
        (
            r#"{"price":1.10,"volume":123456789012345678901234567890}"#,
            r#"{"price":1.10,"volume":123456789012345678901234567890}"#,
        ),
        ("[0.1000000000000000055511151231257827]", "[0.1000000000000000055511151231257827]"),
        ("{\n  \"a\": [1, 2]\n}\n", "{\n  \"a\": [1, 2]\n}"),
        ("null", "null"),
        ("", "null"),
        ("19000000", "19000000"),
        ("no \"JSON\"", r#""no \"JSON\"""#),
        ("{\"cut\":", r#""{\"cut\":""#),
    ];
    for (body, data) in table {
        let session = Session::start(&Script::default().then(charged(body))).await;
        let result = session.call("bds_mpp_ethPrice", json!({})).await;
        assert_eq!(text(&result), format!("{{\"data\":{data},{CHARGE}}}"));
        let object = success(&result);
        assert_eq!(object.keys().collect::<Vec<_>>().len(), 3, "{object:?}");
        assert_eq!(object["credit_balance"], json!(1.9998611111));
        assert_eq!(object["credits_charged"], json!(0.0001388889));
    }
}

#[tokio::test]
async fn a_result_says_what_is_held_while_the_cost_is_not_known() {
    const ID: &str = "req_0123456789abcdef0123456789abcdef";
    let (balance, held) = (("x-bds-credit-balance", "1.5"), ("x-bds-credit-held", "0.50"));
    let (charged, id) = (("x-bds-credit-charged", "0.02"), ("x-bds-request-id", ID));
    // headers, the members after `data`
    let table = [
        (vec![balance, held, id], format!(r#""credit_balance":1.5,"credits_held":0.50,"request_id":"{ID}""#)),
        (vec![balance, charged, id], r#""credit_balance":1.5,"credits_charged":0.02"#.to_owned()),
        (vec![balance, held], r#""credit_balance":1.5,"credits_held":0.50"#.to_owned()),
        (vec![id], String::new()),
    ];
    for (headers, members) in table {
        // The client queries the cost, and the service does not have it yet.
        let unknown = response(404, &[], r#"{"error":"not_found","message":"There is no request with this id."}"#);
        let script = Script::default().then(response(200, &headers, "{}")).then(unknown);
        let result = Session::start(&script).await.call("bds_mpp_ethPrice", json!({})).await;
        let comma = if members.is_empty() { "" } else { "," };
        assert_eq!(text(&result), format!("{{\"data\":{{}}{comma}{members}}}"));
    }
}

#[tokio::test]
async fn deeply_nested_response_is_passed_on_as_text() {
    for (depth, is_text) in [(100, false), (101, true), (127, true), (5000, true)] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let session = Session::start(&Script::default().then(charged(deep.clone()))).await;
        let result = session.call("bds_mpp_ethPrice", json!({})).await;
        assert_eq!(success(&result)["data"].is_string(), is_text, "{depth}");
        assert_eq!(success(&result)["data"].as_str(), is_text.then_some(deep.as_str()));
    }
}

#[tokio::test]
async fn unstated_amounts_are_left_out() {
    let script = Script::default().then(response(200, &[("x-bds-credit-balance", "lots")], "{}"));
    let result = Session::start(&script).await.call("bds_mpp_ethPrice", json!({})).await;
    assert_eq!(text(&result), r#"{"data":{}}"#);
}

#[tokio::test]
async fn balance_and_plans_are_the_services_documents() {
    let balance = r#"{"org_id":"org_1","credit_balance":123456789.12345678,"email":null}"#;
    let plans = r#"{"plans":[{"id":"p","credits":10.00}],"chains":[]}"#;
    let script = Script::default().then(response(200, &[], balance)).then(response(200, &[], plans));
    let session = Session::start(&script).await;
    for (tool, document, target) in
        [("get_credit_balance", balance, "/credits/balance"), ("list_plans", plans, "/credits/plans")]
    {
        let result = session.call(tool, json!({})).await;
        success(&result);
        assert_eq!(text(&result), document);
        let requests = script.requests();
        assert_eq!(requests[0].uri(), target);
        assert_eq!(header(&requests[0], "x-bds-client-source"), Some("mcp"));
    }
    let refused = session.call("list_plans", json!({"chain_id": 1})).await;
    assert_eq!(error(&refused)["fields"]["chain_id"], "this tool takes no arguments");
    assert!(script.requests().is_empty());
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_an_error_of_the_protocol() {
    let script = Script::default();
    let session = Session::start(&script).await;
    for name in ["bds_mpp_nothing", "", "rotate_key", "/mpp/ethPrice"] {
        let error = session.mcp.call_tool(CallToolRequestParams::new(name)).await.unwrap_err();
        let ServiceError::McpError(error) = error else { panic!("{error:?}") };
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{name}");
    }
    assert!(script.requests().is_empty());
}

#[tokio::test]
async fn calls_of_one_session_do_not_wait_for_each_other() {
    use crate::script::{Chunk, chunks};
    let script = Script::default().then(chunks(200, &[], vec![Chunk::Hang])).then(charged("2"));
    let session = Session::start(&script).await;
    let slow = session.mcp.call_tool(request("bds_mpp_ethPrice", json!({})));
    let quick = async {
        script.wait_for_request().await;
        session.call("bds_mpp_ethPrice", json!({})).await
    };
    tokio::select! {
        slow = slow => panic!("{slow:?}"),
        quick = quick => assert_eq!(success(&quick)["data"], 2),
    }
}

/// Like an HTTP transport: puts the head of each request next to its message.
pub(crate) struct OverHttp {
    pub(crate) server: McpServer,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl ServerHandler for OverHttp {
    fn get_info(&self) -> ServerConfig {
        self.server.get_info()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut head = http::Request::builder().uri("/mcp");
        for (name, value) in &self.headers {
            head = head.header(*name, value);
        }
        context.extensions.insert(head.body(()).unwrap().into_parts().0);
        self.server.call_tool(request, context).await
    }
}

#[tokio::test]
async fn over_http_each_call_has_the_key_of_its_own_request() {
    let key = ApiKey::generate(&SystemRandomness);
    let bearer = format!("Bearer {}", key.expose());
    let own = Some(Some(key.expose()));
    // the request's headers, the key of the call if one is made
    let table = [
        (vec![("authorization", bearer.clone())], own),
        (vec![("x-api-key", key.expose().to_owned())], own),
        (vec![("authorization", bearer.clone()), ("x-bds-client-source", "cli".to_owned())], own),
        // The service decides whether it needs one.
        (vec![], Some(None)),
        (vec![("authorization", "Bearer sk_live_nonsense".to_owned())], None),
        (vec![("authorization", bearer.clone()), ("authorization", bearer.clone())], None),
    ];
    for (headers, called) in table {
        let script = Script::default().then(charged("1")).then(response(200, &[], r#"{"plans":[]}"#));
        let client = Client::new(Arc::new(script.clone()), ClientSource::Direct);
        let server = McpServer::new(toolbox(), Callers::PerRequest(client), ToolSettings::default());
        let mcp = connect(OverHttp { server, headers: headers.clone() }).await;
        let result = call(&mcp, "bds_mpp_ethPrice", json!({})).await;
        let requests = script.requests();
        if let Some(key) = called {
            success(&result);
            assert_eq!(header(&requests[0], "x-api-key"), key);
            assert_eq!(header(&requests[0], "x-bds-client-source"), Some("mcp"));
        } else {
            assert_eq!(error(&result)["error"], "unauthorized", "{headers:?}");
            assert_eq!(error(&call(&mcp, "get_credit_balance", json!({})).await)["error"], "unauthorized");
            assert!(requests.is_empty() && script.requests().is_empty());
        }
    }
}
