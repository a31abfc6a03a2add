//! Tool calls that fail: every error gives the agent a next step.

use std::sync::Arc;

use bytes::Bytes;
use metering_client::Client;
use metering_client::tools::{Callers, McpServer, ToolSettings};
use metering_core::{ApiKey, ClientSource, SystemRandomness};
use serde_json::json;

use crate::script::{Chunk, Reply, Script, charged, chunks, response};
use crate::session::{Session, call, connect, error, text, toolbox};

const CALL: &str = "bds_mpp_ethPrice";

type Headers = &'static [(&'static str, &'static str)];

#[tokio::test]
async fn errors_of_the_gateway_are_passed_on_to_the_byte() {
    let shortage = r#"{"error":"insufficient_credits","message":"Buy credits.","credit_balance":-0.0000694444,"required":0.0001388889,"plans_url":"/credits/plans","topup_url":"/credits/topup","plans":[{"id":"p","credits":10.00}]}"#;
    let limit = r#"{"error":"rate_limited","message":"Wait.","retry_after_sec":17,"limit_window":"minute","rate_limits":{"requests_per_minute":240,"requests_per_day":0}}"#;
    // status, headers, body, the added text
    let table: [(u16, Headers, &str, &str); 8] = [
        (402, &[], shortage, ""),
        (429, &[("retry-after", "17")], limit, ""),
        (
            429,
            &[("retry-after", "3")],
            r#"{"error":"too_many_streams","message":"Close one."}"#,
            r#","retry_after_sec":3"#,
        ),
        (401, &[("www-authenticate", "Bearer")], r#"{"error":"unauthorized","message":"Send a live key."}"#, ""),
        (400, &[], r#"{"error":"invalid_parameter","message":"No.","fields":{"block_number":"no"}}"#, ""),
        (404, &[], r#"{"error":"unknown_route","message":"No."}"#, ""),
        (503, &[("retry-after", "1")], r#"{"error":"overloaded","message":"Wait.","retry_after_sec":1}"#, ""),
        (
            502,
            &[("x-bds-credit-balance", "2"), ("x-bds-credit-charged", "0")],
            r#"{"error":"upstream_unreachable","message":"It was refunded."}"#,
            r#","credit_balance":2,"credits_charged":0"#,
        ),
    ];
    for (status, headers, body, added) in table {
        let script = Script::default().then(response(status, headers, body));
        let result = Session::start(&script).await.call(CALL, json!({})).await;
        error(&result);
        assert_eq!(text(&result), format!("{}{added}}}", body.strip_suffix('}').unwrap()));
        script.all_closed().await;
    }
}

#[tokio::test]
async fn errors_from_behind_the_gateway_get_the_same_form() {
    let money: Headers = &[("x-bds-credit-balance", "1.5"), ("x-bds-credit-charged", "0.5")];
    let retry: Headers = &[("retry-after", "9")];
    // status, headers, body, the error
    let table = [
        (
            404,
            money,
            r#"{"detail":"no such block"}"#,
            json!({"error": "http_404", "message": "The service responded with 404 Not Found.",
                "body": {"detail": "no such block"}, "credit_balance": 1.5, "credits_charged": 0.5}),
        ),
        (
            500,
            money,
            "",
            json!({"error": "http_500", "message": "The service responded with 500 Internal Server Error.",
                "credit_balance": 1.5, "credits_charged": 0.5}),
        ),
        (
            502,
            retry,
            "<html>bad</html>",
            json!({"error": "http_502", "message": "The service responded with 502 Bad Gateway.",
                "body": "<html>bad</html>", "retry_after_sec": 9}),
        ),
        (
            302,
            &[("location", "https://elsewhere.example/")],
            "",
            json!({"error": "http_302", "message": "The service responded with 302 Found."}),
        ),
        (
            400,
            &[],
            r#"{"error":{"code":7},"message":null}"#,
            json!({"error": "http_400", "message": "The service responded with 400 Bad Request.",
                "body": {"error": {"code": 7}, "message": null}}),
        ),
    ];
    for (status, headers, body, expected) in table {
        let script = Script::default().then(response(status, headers, body));
        let result = Session::start(&script).await.call(CALL, json!({})).await;
        assert_eq!(json!(error(&result)), expected);
    }
}

#[tokio::test]
async fn long_proxy_error_page_is_truncated() {
    let script = Script::default().then(response(502, &[], "<p>".repeat(100_000)));
    let result = Session::start(&script).await.call(CALL, json!({})).await;
    assert_eq!(error(&result)["body"].as_str().unwrap().len(), 4096);
}

#[tokio::test]
async fn invalid_arguments_send_no_request() {
    let script = Script::default();
    let session = Session::start(&script).await;
    let path = "bds_mpp_snapshot_allTrades_block_number";
    let token = "bds_mpp_token_token_address_pools";
    // tool, arguments, field
    let table = [
        (path, json!({}), "block_number"),
        (path, json!({"block_number": "latest"}), "block_number"),
        (path, json!({"block_number": 1, "from_epoch": 2}), "from_epoch"),
        (token, json!({"token_address": "../../credits/balance"}), "token_address"),
        (token, json!({"token_address": ".."}), "token_address"),
        ("bds_mpp_stream_allTrades", json!({"max_events": 51}), "max_events"),
    ];
    for (tool, arguments, field) in table {
        let result = session.call(tool, arguments.clone()).await;
        let error = error(&result);
        assert_eq!(error["error"], "invalid_parameter", "{arguments}");
        assert!(error["fields"][field].is_string(), "{arguments}: {error:?}");
        assert!(error["message"].as_str().unwrap().contains("nothing was charged"));
    }
    assert!(script.requests().is_empty());
}

#[tokio::test]
async fn a_value_cannot_leave_its_segment() {
    let script = Script::default().then(charged("1"));
    let session = Session::start(&script).await;
    session.call("bds_mpp_token_token_address_pools", json!({"token_address": "a?b=c#d%2e%2e&e f"})).await;
    assert_eq!(script.requests()[0].uri(), "/mpp/token/a%3Fb%3Dc%23d%252e%252e%26e%20f/pools");
}

/// Faults of the service, each with the error code it leads to.
fn faults() -> Vec<(Reply, &'static str)> {
    let money = [("x-bds-credit-balance", "1.5"), ("x-bds-credit-charged", "0.5")];
    let cut = vec![Chunk::Data(Bytes::from_static(b"{\"a\":")), Chunk::Break("internal-host:8787 closed")];
    vec![
        (Reply::Unreachable("internal-host:8787: Connection refused"), "service_unreachable"),
        (chunks(200, &money, cut), "service_unreachable"),
    ]
}

#[tokio::test]
async fn unreachable_service_is_an_error_of_the_same_form() {
    for (reply, code) in faults() {
        let session = Session::start(&Script::default().then(reply)).await;
        let result = session.call(CALL, json!({})).await;
        let error = error(&result);
        assert_eq!(error["error"], code);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("internal-host:8787") && message.contains("get_credit_balance"), "{message}");
    }
}

#[tokio::test]
async fn charge_of_a_broken_response_is_reported() {
    let (reply, _) = faults().pop().unwrap();
    let result = Session::start(&Script::default().then(reply)).await.call(CALL, json!({})).await;
    assert_eq!((&error(&result)["credit_balance"], &error(&result)["credits_charged"]), (&json!(1.5), &json!(0.5)));
}

#[tokio::test]
async fn remote_callers_learn_nothing_about_the_network() {
    for (reply, code) in faults() {
        let key = ApiKey::generate(&SystemRandomness);
        // A client that already has a key represents a transport that found one.
        let client = Client::new(Arc::new(Script::default().then(reply)), ClientSource::Mcp).with_key(key);
        let server = McpServer::new(toolbox(), Callers::PerRequest(client), ToolSettings::default());
        let result = call(&connect(server).await, CALL, json!({})).await;
        assert_eq!(error(&result)["error"], code);
        assert!(!text(&result).contains("internal-host"), "{}", text(&result));
    }
}

#[tokio::test]
async fn invalid_balance_document_is_unreadable() {
    for body in ["[]", "busy", ""] {
        let script = Script::default().then(response(200, &[], body));
        let result = Session::start(&script).await.call("get_credit_balance", json!({})).await;
        assert_eq!(error(&result)["error"], "unreadable_answer", "{body}");
    }
}

#[tokio::test]
async fn oversized_response_is_rejected_and_closed() {
    const MEBIBYTE: usize = 1024 * 1024;
    let money = [("x-bds-credit-balance", "1.5"), ("x-bds-credit-charged", "0.5")];
    // mebibytes, too large
    for (count, is_refused) in [(4, false), (5, true)] {
        let mut body = vec![Chunk::Data(Bytes::from(vec![b'x'; MEBIBYTE])); count];
        if is_refused {
            body.push(Chunk::Hang);
        }
        let script = Script::default().then(chunks(200, &money, body));
        let result = Session::start(&script).await.call(CALL, json!({})).await;
        script.all_closed().await;
        if is_refused {
            assert_eq!(error(&result)["error"], "answer_too_large");
            assert_eq!(error(&result)["credits_charged"], json!(0.5));
        } else {
            assert_eq!(result.is_error, Some(false));
        }
    }
}

#[tokio::test]
async fn key_revoked_between_calls_fails_only_the_second() {
    let revoked =
        response(401, &[("www-authenticate", "Bearer")], r#"{"error":"unauthorized","message":"Send a live key."}"#);
    let script = Script::default().then(charged("1")).then(revoked);
    let session = Session::start(&script).await;
    assert_eq!(session.call(CALL, json!({})).await.is_error, Some(false));
    assert_eq!(error(&session.call(CALL, json!({})).await)["error"], "unauthorized");
}

#[tokio::test]
async fn error_result_size_is_bounded() {
    let pad = "x".repeat(5 * 1024 * 1024);
    let own = format!(r#"{{"error":"not_there","message":"{pad}","pad":"{pad}"}}"#);
    for body in [own, pad] {
        let script = Script::default().then(response(404, &[("x-bds-credit-charged", "0.01")], body));
        let result = Session::start(&script).await.call(CALL, json!({})).await;
        error(&result);
        let text = text(&result);
        assert!(text.len() < 20_000, "{}", text.len());
        assert!(text.contains(r#""credits_charged":0.01"#));
        script.all_closed().await;
    }
}
