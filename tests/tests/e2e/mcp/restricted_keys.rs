//! Keys with less than all rights as the keys of agents: refusals are results that an agent can act on.

use metering_tests::client::Client;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::keys::made;
use crate::mcp::BASE_TOOL;
use crate::mcp::http::{call, post, streamable_session};
use crate::support::wire::STREAM;

/// The result of a tool without arguments: whether it is an error, and its structured content.
#[track_caller]
fn result(session: &Client, tool: &str) -> (bool, Value) {
    let response = post(session, "/mcp", &call(2, tool)).expect(200).json();
    let result = &response["result"];
    let is_error = result["isError"].as_bool().unwrap_or_else(|| panic!("{response}"));
    (is_error, result["structuredContent"].clone())
}

#[test]
fn refusals_because_of_the_key_are_results() {
    let (site, mcp_site) = (Site::new(), Site::new());
    let account = site.account("2");
    let server = site.server().start();
    let gateway = format!("http://{}", server.address());
    let alone = mcp_site.server().set("METERING_SURFACES", "mcp").set("METERING_MCP__GATEWAY", &gateway).start();
    let owner = server.client_with(&account.api_key);
    for tools in [&server, &alone] {
        let session = |terms: Value| streamable_session(&tools.client_with(&made(&owner, &terms).secret));
        // terms, tool, code
        let table = [
            (json!({"scopes": ["read"]}), BASE_TOOL, "key_scope"),
            (json!({"scopes": ["call"]}), "get_credit_balance", "key_scope"),
            (json!({"routes": ["/mpp/ethPrice"]}), BASE_TOOL, "key_scope"),
            (json!({"limit": "0.0001"}), BASE_TOOL, "key_budget_exhausted"),
        ];
        for (terms, tool, code) in table {
            let (is_error, document) = result(&session(terms.clone()), tool);
            assert_eq!((is_error, &document["error"]), (true, &json!(code)), "{terms}");
            assert!(document["message"].as_str().unwrap().contains("othing was charged"), "{document}");
        }
        // A key that may only call can use its tools.
        let (is_error, document) = result(&session(json!({"scopes": ["call"], "limit": "0.5"})), BASE_TOOL);
        assert!(!is_error, "{document}");
        let (_, exhausted) = result(&session(json!({"limit": 0, "limit_reset": "daily"})), BASE_TOOL);
        assert!(exhausted["resets_at"].is_string() && exhausted["retry_after_sec"].is_u64(), "{exhausted}");
    }
}

#[test]
fn requests_in_progress_count_for_tools_too() {
    let (_site, account, server) = Site::serving("2");
    let key = made(&server.client_with(&account.api_key), &json!({"max_in_flight": 1}));
    let client = server.client_with(&key.secret);
    let session = streamable_session(&client);
    let stream = client.open(STREAM);
    let (is_error, document) = result(&session, BASE_TOOL);
    assert_eq!((is_error, &document["error"]), (true, &json!("too_many_requests_in_flight")));
    assert!(document["retry_after_sec"].is_u64(), "{document}");
    drop(stream);
    crate::support::wait::until("the slot is free", || !result(&session, BASE_TOOL).0);
    assert!(!result(&session, BASE_TOOL).0, "and it was given back");
}
