//! The MCP server as a separate process with a gateway elsewhere; and where API keys are sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use metering_tests::client::Client;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::mcp::http::{call, initialize, post, sse_session, streamable_session};
use crate::mcp::{BASE_TOOL, STREAM_TOOL, charged, credits, expected_tools, for_each_client};
use crate::support::upstream::served;
use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance};

/// A server that serves only MCP, on its own site.
fn mcp_server(site: &Site, gateway: &str) -> Server {
    site.server().set("METERING_SURFACES", "mcp").set("METERING_MCP__GATEWAY", gateway).start()
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

#[test]
fn separate_process_gives_same_results_without_a_database() {
    let (site, mcp_site) = (Site::verified(), Site::new());
    let gateway = site.server().set("METERING_SAMPLE__BLOCK_TIME", "200ms").start();
    let server = mcp_server(&mcp_site, &url(gateway.address()));
    for_each_client(|agent, transport| {
        let account = site.account("1");
        let session = agent.connect(&server, transport, &account.api_key);
        assert_eq!(session.tools().len(), expected_tools().len() + 2);
        let _ = charged(session.call(BASE_TOOL, &json!({})), BASE_CALL, CREDIT - BASE_CALL);
        let left = CREDIT - BASE_CALL - 72_000_000;
        let data = charged(session.call(STREAM_TOOL, &json!({"max_events": 2})), 72_000_000, left);
        assert_eq!(data["count"], 2, "{data}");
        let own = session.call("get_credit_balance", &json!({})).expect_success();
        assert_eq!(credits(&own["credit_balance"]), amount(left));
        let plans = session.call("list_plans", &json!({})).expect_success();
        assert_eq!(plans, gateway.client().get("/credits/plans").expect(200).json());
        let error = session.call(BASE_TOOL, &json!({"more": 1})).expect_error();
        assert_eq!(error["error"], "invalid_parameter");
        let usage = gateway.client_with(&account.api_key).get("/credits/usage").expect(200).json();
        let sources = usage["transactions"].as_array().unwrap().iter().filter(|entry| entry["type"] == "usage");
        assert!(sources.clone().all(|entry| entry["client_source"] == "mcp") && sources.count() == 2, "{usage}");
        // A key revoked at the gateway is refused here.
        let _ = site.admin_json(&["account", "revoke", &account.org_id, "--yes"]);
        assert!(session.try_call(BASE_TOOL, &json!({})).is_err());
        let _ = post(&server.client_with(&account.api_key), "/mcp", &initialize()).expect(401);
    });
    let (client, account) = (server.client(), site.account("1"));
    for path in [BASE, "/credits/plans", "/credits/balance", "/metering", "/signup/challenge"] {
        assert_eq!(client.clone().with_key(&account.api_key).get(path).status, 404, "{path} is of another surface");
    }
    assert_eq!(client.get("/health").status, 200);
    // Its tokens are those of the service.
    let refused = post(&client, "/mcp", &initialize()).expect(401);
    let metadata = "resource_metadata=\"http://localhost/.well-known/oauth-protected-resource/mcp\"";
    assert!(refused.header("www-authenticate").is_some_and(|challenge| challenge.contains(metadata)), "{refused:?}");
    let resource = client.get("/.well-known/oauth-protected-resource/mcp").expect(200).json();
    assert_eq!(resource["resource"], "http://localhost/mcp");
    assert_eq!(resource["authorization_servers"], json!([url(gateway.address())]));
    assert!(!mcp_site.database().exists(), "the MCP process must not create a database");
    assert_eq!(balance(&gateway.client_with(&account.api_key)), "1");
}

#[test]
fn gateway_outage_ends_no_session() {
    let (site, mcp_site) = (Site::verified(), Site::new());
    let account = site.account("1");
    let gateway = site.server().start();
    let address = gateway.address();
    let server = mcp_site
        .server()
        .set("METERING_SURFACES", "mcp")
        .set("METERING_MCP__GATEWAY", &url(address))
        .set("METERING_MCP__KEY_CHECK", "100ms")
        .start();
    let client = server.client_with(&account.api_key);
    let (mut stream, endpoint) = sse_session(&client);
    gateway.kill();
    // Keys cannot be checked now, but this does not make them invalid.
    for response in
        [post(&client, &endpoint, &call(2, BASE_TOOL)), post(&client, "/mcp", &initialize()), client.get("/sse")]
    {
        assert!([502, 503].contains(&response.status), "{response:?}");
        assert!(
            response.header("retry-after").is_some() && response.problem()["retry_after_sec"].is_u64(),
            "{response:?}"
        );
        // The gateway's address must not leak.
        assert!(!response.text().contains(&address.to_string()), "{response:?}");
    }
    assert_eq!(server.client().get("/sse").status, 401, "a key is missing, whatever the gateway would respond");
    assert_eq!((server.client().get("/health").status, server.client().get("/ready").status), (200, 503));
    std::thread::sleep(Duration::from_millis(500));
    let _gateway = site.server_at(&address.to_string()).start();
    assert_eq!(post(&client, &endpoint, &call(3, BASE_TOOL)).status, 202);
    let seen = stream.read_until("credits_charged");
    assert!(seen.contains("\"id\":3") && !seen.contains("\"id\":2"), "{seen}");
    assert_eq!(balance(&Client::new(address).with_key(&account.api_key)), amount(CREDIT - BASE_CALL));
}

#[test]
fn upstream_never_sees_a_key() {
    let (_site, upstream, account, server) = served("1");
    for_each_client(|agent, transport| {
        let session = agent.connect(&server, transport, &account.api_key);
        let tools = session.tools();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"bds_api_echo") && names.contains(&"bds_api_echo_post"), "{names:?}");
        assert!(!names.contains(&"bds_api_free"), "not metered: {names:?}");
        for (tool, arguments, target) in [
            ("bds_api_echo", json!({"q": "a b/c?d=e&f"}), "/api/echo?q=a%20b%2Fc%3Fd%3De%26f"),
            ("bds_api_echo_word", json!({"word": "é?#%"}), "/api/echo/%C3%A9%3F%23%25"),
            ("bds_api_echo_post", json!({"q": "x"}), "/api/echo?q=x"),
        ] {
            let _ = session.call(tool, &arguments).expect_success();
            assert_eq!(upstream.last().target, target, "{tool}");
        }
        // The upstream's redirect is reported, not followed.
        let before = upstream.seen().len();
        let _ = session.call("bds_api_moved", &json!({}));
        assert_eq!(upstream.seen().len(), before + 1);
    });
    for seen in upstream.seen() {
        let text = format!("{seen:?}");
        assert!(!text.contains("sk_live_") && !text.contains(&account.api_key), "{text}");
        for name in ["authorization", "x-api-key", "cookie", "mcp-session-id"] {
            assert!(!seen.headers.contains_key(name), "{text}");
        }
    }
}

/// A server that records every request with its key, and sends scripted responses.
struct RecordingServer {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    _runtime: Runtime,
}

impl RecordingServer {
    /// `reply` gets the path.
    fn start(reply: impl Fn(&str) -> Response + Clone + Send + Sync + 'static) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let routes = Router::new().fallback(async move |request: Request| {
            let key = request.headers().get("authorization").or_else(|| request.headers().get("x-api-key"));
            let key = key.map_or("no key", |value| value.to_str().unwrap());
            noted.lock().unwrap().push(format!("{} {} with {key}", request.method(), request.uri()));
            reply(request.uri().path())
        });
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { address, seen, _runtime: runtime }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

#[test]
fn gateway_redirects_are_not_followed() {
    let (site, mcp_site) = (Site::new(), Site::new());
    let account = site.account("1");
    let thief = RecordingServer::start(|_| "{\"stolen\":true}".into_response());
    let elsewhere = url(thief.address);
    let gateway = RecordingServer::start(move |path| match path {
        "/endpoints.json" => include_str!("../../../../metering-sample/routes.json").into_response(),
        "/credits/balance" => "{\"credit_balance\":1}".into_response(),
        _ => (StatusCode::TEMPORARY_REDIRECT, [("location", format!("{elsewhere}{path}"))]).into_response(),
    });
    let server = mcp_server(&mcp_site, &url(gateway.address));
    let client = server.client_with(&account.api_key);
    let session = streamable_session(&client);
    for tool in [BASE_TOOL, STREAM_TOOL, "list_plans"] {
        let response = post(&session, "/mcp", &call(2, tool)).expect(200).text();
        assert!(response.contains("\"isError\":true") && !response.contains("stolen"), "{tool}: {response}");
    }
    assert_eq!(thief.seen(), Vec::<String>::new(), "no request, and no key, went elsewhere");
    let received = gateway.seen();
    assert!(received.iter().any(|line| line.starts_with(&format!("GET {BASE} with sk_live_"))), "{received:?}");
}
