//! Errors that stop an agent in the middle of its work (no credits, too many calls), and how it continues.

use std::time::Duration;

use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::mcp::{BASE_TOOL, STREAM_TOOL, charged, credits, for_each_client, selling};
use crate::support::calendar::{in_one_minute, minute_with};
use crate::support::wire::{BASE_CALL, amount, balance, usage_events};

#[test]
fn exhausted_credits_are_a_tool_error_until_granted_more() {
    let site = Site::verified();
    let server = site.server().args(selling(&site)).start();
    let offered = server.client().get("/credits/plans").expect(200).json();
    assert!(!offered["plans"].as_array().unwrap().is_empty(), "{offered}");
    for_each_client(|agent, transport| {
        // One and a half base calls: the second call takes the balance below zero, by less than its price.
        let account = site.account("0.00020833");
        let session = agent.connect(&server, transport, &account.api_key);
        let granted = 1_499_976;
        for left in [granted - BASE_CALL, granted - 2 * BASE_CALL] {
            let _ = charged(session.call(BASE_TOOL, &json!({})), BASE_CALL, left);
        }
        for (tool, arguments) in [(BASE_TOOL, json!({})), (STREAM_TOOL, json!({"max_events": 1}))] {
            let error = session.call(tool, &arguments).expect_error();
            assert_eq!(error["error"], "insufficient_credits", "{error}");
            assert_eq!(credits(&error["credit_balance"]), amount(granted - 2 * BASE_CALL), "{error}");
            assert!(error["required"].is_number() && error["message"].is_string(), "{error}");
            assert!(error["plans_url"].is_string() && error["topup_url"].is_string(), "{error}");
            assert_eq!(error["plans"], offered["plans"], "an agent can pay without another look-up");
        }
        // Free tools still work.
        let own = session.call("get_credit_balance", &json!({})).expect_success();
        assert_eq!(credits(&own["credit_balance"]), amount(granted - 2 * BASE_CALL));
        assert_eq!(session.call("list_plans", &json!({})).expect_success()["plans"], offered["plans"]);

        let _ = site.admin_json(&["account", "grant", &account.org_id, "--credits", "1"]);
        let left = 7_200_000_000 + granted - 3 * BASE_CALL;
        let _ = charged(session.call(BASE_TOOL, &json!({})), BASE_CALL, left);
        let client = server.client_with(&account.api_key);
        assert_eq!((balance(&client), usage_events(&client)), (amount(left), 3));
    });
}

#[test]
fn cap_reached_mid_session_is_a_tool_error_with_delay() {
    in_one_minute(|| {
        let site = Site::new();
        let server = site.server().start();
        minute_with(Duration::from_secs(20));
        for_each_client(|agent, transport| {
            let account = site.account_with_caps("1", 2, 0);
            let session = agent.connect(&server, transport, &account.api_key);
            for _ in 0..2 {
                let _ = session.call(BASE_TOOL, &json!({})).expect_success();
            }
            let error = session.call(BASE_TOOL, &json!({})).expect_error();
            assert_eq!(
                (&error["error"], &error["limit_window"]),
                (&json!("rate_limited"), &json!("minute")),
                "{error}"
            );
            let wait = error["retry_after_sec"].as_u64();
            assert!(wait.is_some_and(|seconds| (1..=60).contains(&seconds)), "{error}");
            assert_eq!(error["rate_limits"]["requests_per_minute"], 2, "{error}");
            let own = session.call("get_credit_balance", &json!({})).expect_success();
            assert_eq!(credits(&own["credit_balance"]), amount(7_200_000_000 - 2 * BASE_CALL));
            let _ = site.admin_json(&["account", "limits", &account.org_id, "--rpm", "0", "--rpd", "0"]);
            let _ = session.call(BASE_TOOL, &json!({})).expect_success();
            assert_eq!(usage_events(&server.client_with(&account.api_key)), 3);
        });
        site.verify();
    });
}

#[test]
fn too_many_streams_are_a_tool_error() {
    let site = Site::new();
    let server = site
        .server()
        .set("METERING_GATEWAY__MAX_STREAMS_PER_KEY", "1")
        .set("METERING_SAMPLE__BLOCK_TIME", "1h")
        .set("METERING_MCP__STREAM_WAIT", "30s")
        .start();
    for_each_client(|agent, transport| {
        let account = site.account("1");
        let session = agent.connect(&server, transport, &account.api_key);
        let held = server.client_with(&account.api_key).open("/mpp/stream/allTrades");
        assert_eq!(held.status, 200);
        let error = session.call(STREAM_TOOL, &json!({"max_events": 1})).expect_error();
        assert_eq!(error["error"], "too_many_streams", "{error}");
        assert!(error["retry_after_sec"].is_u64(), "{error}");
        let charges: Value = server.client_with(&account.api_key).get("/credits/balance").expect(200).json();
        assert_eq!(credits(&charges["credit_balance"]), "0.99", "only the open stream was charged");
    });
}
