//! The MCP server at the HTTP level: which clients are allowed, and what happens to invalid JSON-RPC. There is no SDK
//! here, because it would hide statuses and refuse to send invalid messages.

use metering_tests::client::{Client, exchange};
use metering_tests::response::{OpenResponse, Response};
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::mcp::BASE_TOOL;
use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance};

/// The first message of the handshake.
pub(crate) fn initialize() -> Value {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "metering-tests", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

/// A call of a tool without arguments.
pub(crate) fn call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

/// A request of MCP 2026-07-28, which needs no session. Its `_meta` names this version.
fn stateless(version: &str, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "metering-tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

/// Posts a message with the required headers.
#[track_caller]
pub(crate) fn post(client: &Client, path: &str, message: &Value) -> Response {
    accepting(client).post(path, message)
}

/// A client that accepts both of the server's content types.
pub(crate) fn accepting(client: &Client) -> Client {
    client.clone().with_header("Accept", "application/json, text/event-stream")
}

/// An initialized session over HTTP+SSE: its stream, and the path for its messages.
#[track_caller]
pub(crate) fn sse_session(client: &Client) -> (OpenResponse, String) {
    let mut stream = client.open("/sse");
    assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
    let first = stream.read_until("\n\n");
    let mut lines = first.lines();
    assert_eq!(lines.next().map(|line| line.replace(": ", ":")), Some("event:endpoint".to_owned()), "{first}");
    let endpoint = lines.next().and_then(|line| line.strip_prefix("data:")).map(str::trim).unwrap().to_owned();
    assert!(endpoint.starts_with("/messages/?session_id="), "{endpoint}");
    assert_eq!(post(client, &endpoint, &initialize()).status, 202);
    let _ = stream.read_until("serverInfo");
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(client, &endpoint, &initialized).status, 202);
    (stream, endpoint)
}

/// A client with an initialized session of Streamable HTTP.
#[track_caller]
pub(crate) fn streamable_session(client: &Client) -> Client {
    let opened = post(client, "/mcp", &initialize()).expect(200);
    let client = client.clone().with_header("MCP-Protocol-Version", "2025-06-18");
    let client = match opened.header("mcp-session-id") {
        Some(id) => client.with_header("Mcp-Session-Id", id),
        None => client,
    };
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(&client, "/mcp", &initialized).status, 202);
    client
}

/// The status of a request with these header lines.
#[track_caller]
fn status(server: &Server, first: &str, head: &[String], body: &str) -> u16 {
    let lines: String = head.iter().map(|line| format!("{line}\r\n")).collect();
    let text = format!(
        "{first} HTTP/1.1\r\n{lines}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    Response::parse(&exchange(server.address(), text.as_bytes()).unwrap()).unwrap().status
}

#[test]
fn unlisted_host_or_origin_is_refused_everywhere() {
    let site = Site::new();
    let account = site.account("1");
    let server = site
        .server()
        .set("METERING_MCP__ALLOWED_HOSTS", "metering.example")
        .set("METERING_MCP__ALLOWED_ORIGINS", "https://console.example")
        .start();
    let client = server.client_with(&account.api_key);
    let port = server.address().port();
    let here = format!("Host: {}", server.address());
    let with_key = |line: &str| [line.to_owned(), format!("Authorization: Bearer {}", account.api_key)];
    let (_stream, endpoint) = sse_session(&client);
    // header lines, whether they are allowed
    let table = [
        (vec![here.clone()], true),
        (vec![format!("Host: localhost:{port}")], true),
        (vec!["Host: metering.example".to_owned()], true),
        (vec!["Host: METERING.example:443".to_owned()], true),
        (vec![here.clone(), "Origin: https://console.example".to_owned()], true),
        (vec!["Host: evil.example".to_owned()], false),
        (vec![format!("Host: evil.example:{port}")], false),
        (vec!["Host: metering.example.evil.example".to_owned()], false),
        (vec!["Host: 169.254.169.254".to_owned()], false),
        (vec![here.clone(), "Origin: https://evil.example".to_owned()], false),
        (vec![here.clone(), "Origin: http://console.example".to_owned()], false),
        (vec![here.clone(), "Origin: https://console.example.evil.example".to_owned()], false),
        (vec![here, "Origin: null".to_owned()], false),
    ];
    // Each ping has its own id: that of one that is still in progress would be refused.
    for (id, (lines, allowed)) in (9..).zip(table) {
        let head = [&with_key("X-Test: 1")[..], &lines].concat();
        let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
        let posted = status(&server, &format!("POST {endpoint}"), &head, &ping);
        let streamed = status(&server, "POST /mcp", &head, &initialize().to_string());
        assert_eq!((posted, streamed), if allowed { (202, 200) } else { (403, 403) }, "{lines:?}");
        if !allowed {
            assert_eq!(status(&server, "GET /sse", &head, ""), 403, "{lines:?}");
        }
    }
    // The rest of the service does not check `Origin`.
    let _ = client.with_header("Origin", "https://evil.example").get(BASE).expect(200);
}

#[test]
fn invalid_message_is_refused_and_session_continues() {
    let (_site, account, server) = Site::serving("1");
    let client = server.client_with(&account.api_key);
    let (mut stream, endpoint) = sse_session(&client);
    let session = streamable_session(&client);
    let deep = "[".repeat(50_000);
    let large = format!("\"{}\"", "x".repeat(2_000_000));
    let garbage: [&[u8]; 12] = [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"7",
        b"\"initialize\"",
        b"[]",
        b"{}",
        b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
        deep.as_bytes(),
        large.as_bytes(),
    ];
    for body in garbage {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]);
        for (client, path) in [(&client, endpoint.as_str()), (&session, "/mcp")] {
            let response = accepting(client).send("POST", path, Some(body));
            let expected = if body == large.as_bytes() { (413, "payload_too_large") } else { (400, "invalid_json") };
            assert_eq!((response.status, &*response.error()), expected, "{path} {shown}: {}", response.text());
        }
    }
    // method, path, status
    let table = [
        ("POST", "/messages/?session_id=unknown", 404),
        ("POST", "/messages/", 404),
        ("GET", "/messages/?session_id=unknown", 405),
        ("POST", "/sse", 405),
        ("PUT", "/mcp", 405),
    ];
    for (method, path, status) in table {
        let response = accepting(&client).send(method, path, Some(initialize().to_string().as_bytes()));
        assert_eq!(response.status, status, "{method} {path}: {}", response.text());
    }
    // An unknown method is a JSON-RPC error.
    let unknown = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/steal"});
    let response = post(&session, "/mcp", &unknown);
    assert!(response.text().contains("-32601"), "{response:?}");
    assert_eq!(post(&client, &endpoint, &unknown).status, 202);
    let _ = stream.read_until("-32601");

    // A known method with the wrong parameters is an error too.
    for (id, method, params) in [(6, "tools/call", json!({})), (7, "tools/call", json!({"name": "x", "arguments": []}))]
    {
        let malformed = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        assert!(post(&session, "/mcp", &malformed).text().contains("-32602"), "{malformed}");
        assert_eq!(post(&client, &endpoint, &malformed).status, 202);
        let _ = stream.read_until("-32602");
    }
    // HTTP header errors are refused before JSON-RPC is spoken.
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"}).to_string();
    let key = format!("Authorization: Bearer {}", account.api_key);
    let (json, both) = ("Content-Type: application/json", "Accept: application/json, text/event-stream");
    let send = |headers: &[&str; 3]| {
        let lines = [&headers[..], &[&key]].concat().join("\r\n");
        let (host, length) = (server.address(), ping.len());
        let sent = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{lines}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{ping}"
        );
        Response::parse(&exchange(server.address(), sent.as_bytes()).unwrap()).unwrap()
    };
    // headers, status, code
    let table = [
        ([json, "Accept: text/event-stream", "X: 1"], 406, "not_acceptable"),
        ([json, "Accept: text/html, */*;q=0", "X: 1"], 406, "not_acceptable"),
        (["Content-Type: text/plain", both, "X: 1"], 415, "unsupported_media_type"),
    ];
    for (headers, status, code) in table {
        let response = send(&headers);
        assert_eq!((response.status, &*response.error()), (status, code), "{headers:?}");
        let error = response.json();
        assert_eq!((&error["jsonrpc"], &error["id"]), (&json!("2.0"), &Value::Null), "{error}");
        assert_eq!(error["error"]["message"], error["error"]["data"]["message"], "{error}");
    }
    // Clients that accept JSON, or send no `Accept` header, are served.
    for accept in ["Accept: */*", "Accept: application/json", "Accept: text/html, application/*;q=0.1", "X: 2"] {
        assert_eq!(send(&[json, accept, "X: 1"]).status, 200, "{accept}");
    }

    assert_eq!(post(&client, &endpoint, &call(8, BASE_TOOL)).status, 202);
    let _ = stream.read_until("credit_balance");
    let _ = post(&session, "/mcp", &call(8, BASE_TOOL)).expect(200);
    assert_eq!(balance(&client), amount(CREDIT - 2 * BASE_CALL));
}

#[test]
fn batches_are_refused_and_their_version_is_not_spoken() {
    let site = Site::new();
    let server = site.server().start();
    let client = server.client_with(&site.account("1").api_key);
    // asked for, spoken
    let table = [("2024-11-05", "2024-11-05"), ("2025-03-26", "2024-11-05"), ("2025-11-25", "2025-11-25")];
    for (asked, spoken) in table {
        let mut message = initialize();
        message["params"]["protocolVersion"] = json!(asked);
        let response = post(&client, "/mcp", &message).expect(200);
        assert_eq!(response.json()["result"]["protocolVersion"], spoken, "{response:?}");
        assert!(response.header("mcp-session-id").is_some(), "{response:?}");
    }
    let refused = post(&client, "/mcp", &json!([call(1, BASE_TOOL), call(2, BASE_TOOL)])).expect(400);
    assert!(refused.text().contains("batch"), "{refused:?}");
    assert_eq!(balance(&client), "1");
}

#[test]
fn requests_of_2026_07_28_need_no_session_but_headers_that_match() {
    let site = Site::new();
    let server = site.server().start();
    let client = server.client_with(&site.account("1").api_key);
    let (newest, newer, older) = ("2026-07-28", "2099-01-01", "2025-11-25");
    let send = |message: &Value, [version, method, name]: [&str; 3]| {
        let headers = [("MCP-Protocol-Version", version), ("Mcp-Method", method), ("Mcp-Name", name)];
        let given = headers.iter().filter(|(_, value)| !value.is_empty());
        post(&given.fold(client.clone(), |client, (name, value)| client.with_header(name, value)), "/mcp", message)
    };
    let (list, tool) = ("tools/list", json!({"name": BASE_TOOL, "arguments": {}}));
    let result = |method: &str, params: &Value, name: &str| {
        let response = send(&stateless(newest, method, params.clone()), [newest, method, name]).expect(200);
        assert_eq!(response.header("mcp-session-id"), None);
        let result = response.json()["result"].take();
        assert_eq!(result["resultType"], "complete", "{result}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "metering", "{result}");
        result
    };
    let discovered = result("server/discover", &json!({}), "");
    assert_eq!(discovered["supportedVersions"], json!(["2024-11-05", "2025-06-18", older, newest]));
    assert_eq!(discovered["capabilities"], json!({"tools": {"listChanged": true}}));
    for cacheable in [discovered, result(list, &json!({}), "")] {
        assert_eq!((&cacheable["ttlMs"], &cacheable["cacheScope"]), (&json!(60_000), &json!("public")));
    }
    for name in [BASE_TOOL, "=?base64?YmRzX21wcF9zbmFwc2hvdF9hbGxUcmFkZXM=?="] {
        assert_eq!(result("tools/call", &tool, name)["isError"], false, "{name}");
    }
    // version in `_meta`, method, parameters, headers, status, error
    let none = json!({});
    let table = [
        (newest, list, &none, [newest, "", ""], 400, -32_020),
        (newest, list, &none, [newest, "tools/call", ""], 400, -32_020),
        (newest, list, &none, ["", list, ""], 400, -32_020),
        (newest, list, &none, [older, list, ""], 400, -32_020),
        (newest, "tools/call", &tool, [newest, "tools/call", ""], 400, -32_020),
        (newest, "tools/call", &tool, [newest, "tools/call", "list_plans"], 400, -32_020),
        (newer, list, &none, [newer, list, ""], 400, -32_022),
        (newest, "ping", &none, [newest, "ping", ""], 404, -32_601),
        (newest, "tools/steal", &none, [newest, "tools/steal", ""], 404, -32_601),
    ];
    for (version, method, params, headers, status, code) in table {
        let response = send(&stateless(version, method, params.clone()), headers);
        let error = response.json();
        assert_eq!((response.status, &error["error"]["code"]), (status, &json!(code)), "{headers:?}: {error}");
        assert_eq!(error["id"], 7, "{error}");
    }
    // Without `_meta`: the newest version requires it, and others are only spoken if they are supported.
    for (version, code) in [(newest, -32_602), ("2025-03-26", -32_022), ("1999-01-01", -32_022)] {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": list, "params": {}});
        let error = send(&message, [version, list, ""]).expect(400).json();
        assert_eq!((&error["id"], &error["error"]["code"]), (&json!(7), &json!(code)), "{error}");
    }
    // Older clients open a session as before. Their versions have no subscriptions.
    let opened = post(&client, "/mcp", &initialize()).expect(200);
    assert_eq!(opened.json()["result"]["capabilities"], json!({"tools": {}}));
    assert_eq!(balance(&client), amount(CREDIT - 2 * BASE_CALL), "refused requests cost nothing");
}

#[test]
fn keys_are_not_logged_and_clients_cannot_flood_the_log() {
    let site = Site::new();
    let account = site.account("1");
    for (filter, talkative) in [("info", false), ("trace,rmcp=trace", true)] {
        let server = site.server().set("METERING_LOG__FILTER", filter).start();
        let client = server.client_with(&account.api_key);
        let (mut stream, endpoint) = sse_session(&client);
        let long = format!("a word of the client{}", " and another".repeat(500));
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 77, "reason": long}});
        assert_eq!(post(&client, &endpoint, &cancelled).status, 202);
        assert_eq!(post(&client, &endpoint, &call(2, BASE_TOOL)).status, 202);
        let _ = stream.read_until("credit_balance");
        let _ = post(&streamable_session(&client), "/mcp", &call(2, BASE_TOOL)).expect(200);
        let log = server.log();
        assert_eq!(log.contains("a word of the client"), talkative, "{filter}: {log}");
        assert!(!log.contains(&account.api_key), "{filter}: the key is in the log");
    }
}

#[test]
fn disabled_surfaces_are_not_served() {
    let (site, account, server) = Site::serving_with("1", |server| server.set("METERING_SURFACES", "metering,gateway"));
    let client = server.client_with(&account.api_key);
    for response in [client.get("/sse"), post(&client, "/mcp", &initialize()), client.get("/messages/")] {
        assert_eq!(response.status, 404, "{response:?}");
    }
    let _ = client.get(BASE).expect(200);
    let output = site.server().set("METERING_SURFACES", "nothing").run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("surfaces"), "{output:?}");
}
