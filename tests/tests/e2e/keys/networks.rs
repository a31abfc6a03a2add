//! Keys that may be used only from some networks, directly and behind a proxy.

use std::time::Duration;

use metering_tests::client::Client;
use metering_tests::site::Site;
use serde_json::json;

use super::{change, made};
use crate::mcp::BASE_TOOL;
use crate::mcp::http::{accepting, call, initialize, post, sse_session, streamable_session};
use crate::support::wire::BASE;

const SECRET: &str = "correct horse battery";

/// The client, behind a proxy that names it.
fn from(client: &Client, address: &str) -> Client {
    client.clone().with_header("X-Forwarded-For", address)
}

#[test]
fn key_is_refused_everywhere_from_elsewhere() {
    let site = Site::verified();
    let account = site.account("2");
    let setup = site.server().set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1");
    let server = setup.set("METERING_BILLING__INTERNAL_SECRET", SECRET).start();
    let owner = server.client_with(&account.api_key);
    let terms = json!({"networks": ["203.0.113.0/24", "2001:db8::/32"], "scopes": ["call", "read", "manage", "topup"]});
    let client = server.client_with(&made(&owner, &terms).secret);
    for address in ["203.0.113.9", "2001:db8::1", "6.6.6.6, 203.0.113.9", "[2001:db8::1]:80"] {
        let inside = from(&client, address);
        assert_eq!((inside.get(BASE).status, inside.get("/keys/current").status), (200, 200), "{address}");
    }
    // The last one is the proxy itself, without a client.
    for address in ["198.51.100.1", "2001:db9::1", "203.0.113.9, 198.51.100.1", "nonsense"] {
        let outside = from(&client, address);
        for (method, path) in [
            ("GET", BASE),
            ("GET", "/mpp/nothing"),
            ("GET", "/credits/balance"),
            ("GET", "/credits/ledger?limit=x"),
            ("GET", "/keys/current"),
            ("POST", "/keys"),
            ("POST", "/keys/current/rotate"),
            ("POST", "/credits/topup"),
        ] {
            let refused = outside.send(method, path, None).expect(403);
            assert_eq!(refused.error(), "key_network", "{method} {path} from {address}");
        }
    }
    // A resolver names its client; without one, the address is unknown.
    let resolver = from(&client, "203.0.113.9").with_header("X-BDS-Internal-Billing-Secret", SECRET);
    let deduct =
        |ip| resolver.post("/internal/billing/deduct", &json!({"path": BASE, "method": "GET", "client_ip": ip}));
    assert_eq!(deduct(json!("203.0.113.7")).status, 200);
    assert_eq!(deduct(json!("198.51.100.1")).expect(403).error(), "key_network");
    assert_eq!(deduct(json!(null)).expect(403).error(), "key_network");
    assert_eq!(resolver.post("/internal/billing/deduct", &json!({"path": 1})).expect(400).error(), "validation_failed");
    assert_eq!(resolver.send("POST", "/internal/billing/lookup", None).status, 200, "asks about a key of another");
}

#[test]
fn forwarded_addresses_of_clients_are_not_believed() {
    let (_site, account, server) = Site::serving("2");
    let owner = server.client_with(&account.api_key);
    let remote = server.client_with(&made(&owner, &json!({"networks": ["203.0.113.0/24"]})).secret);
    assert_eq!(from(&remote, "203.0.113.9").get(BASE).expect(403).error(), "key_network");
    assert_eq!(post(&from(&remote, "203.0.113.9"), "/mcp", &initialize()).expect(403).error(), "key_network");
    let local = server.client_with(&made(&owner, &json!({"networks": ["127.0.0.1"]})).secret);
    assert_eq!(from(&local, "203.0.113.9").get(BASE).status, 200);
}

#[test]
fn tools_know_where_their_callers_are() {
    let (site, mcp_site) = (Site::new(), Site::new());
    let account = site.account("2");
    let trusting = |site: &Site| {
        let setup = site.server().set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1");
        setup.set("METERING_MCP__KEY_CHECK", "100ms")
    };
    let server = trusting(&site).start();
    let gateway = format!("http://{}", server.address());
    let alone = trusting(&mcp_site).set("METERING_SURFACES", "mcp").set("METERING_MCP__GATEWAY", &gateway).start();
    let owner = server.client_with(&account.api_key);
    for tools in [&server, &alone] {
        let key = made(&owner, &json!({"networks": ["203.0.113.0/24"]}));
        let client = tools.client_with(&key.secret);
        let refused = post(&from(&client, "198.51.100.1"), "/mcp", &initialize()).expect(403);
        assert_eq!(refused.error(), "key_network");
        let inside = from(&client, "203.0.113.9");
        let session = streamable_session(&inside);
        let result = post(&session, "/mcp", &call(2, BASE_TOOL)).expect(200).json();
        assert_eq!(result["result"]["isError"], json!(false), "{result}");
        // Each message of a session counts where it comes from.
        let (mut stream, endpoint) = sse_session(&inside);
        assert_eq!(post(&inside, &endpoint, &call(3, BASE_TOOL)).status, 202);
        let _ = stream.read_until("credits_charged");
        let elsewhere = post(&from(&client, "198.51.100.1"), &endpoint, &call(4, BASE_TOOL));
        assert_eq!(elsewhere.expect(403).error(), "key_network");
        // A session ends when the key may no longer be used from where it was opened.
        let _ = change(&owner, &key, &json!({"networks": ["198.51.100.0/24"]})).expect(200);
        std::thread::sleep(Duration::from_millis(10));
        let _ = stream.finish();
        assert_eq!(accepting(&inside).post("/mcp", &call(5, BASE_TOOL)).expect(403).error(), "key_network");
    }
    assert_eq!(owner.get("/credits/usage/summary").expect(200).json()["totals"]["usage_events"], 4);
}
