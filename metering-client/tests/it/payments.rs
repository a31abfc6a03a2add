//! Payments of tool calls: offers in refusals, payments in requests, and payment members of results. And the limit on a
//! call's cost.

use metering_core::{ApiKey, SystemRandomness};
use metering_pay::wire::x402::{PaymentPayload, PaymentPayloadV1};
use rmcp::model::{CallToolResult, ErrorData, Implementation, InitializeRequestParams, RequestMetaObject};
use rmcp::service::ServiceError;
use serde_json::{Value, json};

use crate::script::{Script, charged, response};
use crate::session::{Session, connect_as, error, request, server, success, text};

const CALL: &str = "bds_mpp_ethPrice";

/// The header of a 402, with one offer and an extension that is about HTTP.
const REQUIRED: &str = "eyJ4NDAyVmVyc2lvbiI6MiwiZXJyb3IiOiJpbnN1ZmZpY2llbnRfY3JlZGl0cyIsInJlc291cmNlIjp7InVybCI6Imh0dHBzOi8vYXBpLmV4YW1wbGUuY29tL21wcC9ldGhQcmljZSIsImRlc2NyaXB0aW9uIjoiUHJpY2UiLCJtaW1lVHlwZSI6ImFwcGxpY2F0aW9uL2pzb24ifSwiYWNjZXB0cyI6W3sic2NoZW1lIjoiZXhhY3QiLCJuZXR3b3JrIjoiZWlwMTU1Ojg0NTMyIiwiYW1vdW50IjoiNTAwMDAiLCJhc3NldCI6IjB4MDM2Q2JENTM4NDJjNTQyNjYzNGU3OTI5NTQxZUMyMzE4ZjNkQ0Y3ZSIsInBheVRvIjoiMHgyMDk2OTNCYzZhZmMwQzUzMjhiQTM2RmFGMDNDNTE0RUYzMTIyODdDIiwibWF4VGltZW91dFNlY29uZHMiOjMwMCwiZXh0cmEiOnsibmFtZSI6IlVTREMiLCJ2ZXJzaW9uIjoiMiJ9fV0sImV4dGVuc2lvbnMiOnsiYmF6YWFyIjp7ImluZm8iOnt9LCJzY2hlbWEiOnt9fX19";
/// The header of a response whose payment is credited.
const SETTLED: &str = "eyJzdWNjZXNzIjp0cnVlLCJ0cmFuc2FjdGlvbiI6IjB4MTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMjEyMTIxMiIsIm5ldHdvcmsiOiJlaXAxNTU6ODQ1MzIiLCJleHRyYSI6eyJhY2NvdW50Ijoib3JnXzEiLCJjcmVkaXRfYmFsYW5jZSI6IjAuMDQifX0=";
/// The header of a response whose payment is not confirmed yet.
const PENDING: &str = "eyJzdWNjZXNzIjpmYWxzZSwiZXJyb3JSZWFzb24iOiJzZXR0bGVtZW50X3BlbmRpbmciLCJ0cmFuc2FjdGlvbiI6IiIsIm5ldHdvcmsiOiJlaXAxNTU6ODQ1MzIifQ==";

/// A challenge of MPP, as a header.
const CHALLENGE: &str = r#"Payment id="c1", realm="api.example.com", method="evm", intent="charge", request="eyJhbW91bnQiOiI1In0", expires="2025-06-15T15:11:40Z""#;
/// A credential of npm's mppx.
const MPP_VECTOR: &str = include_str!("../../../metering-pay/tests/vectors/payments/mpp-evm-authorization.json");

/// A payment of version 2 as PyPI's session sends it, with nulls.
fn payment() -> Value {
    serde_json::from_str(
        r#"{"x402Version": 2, "accepted": {"scheme": "exact", "network": "eip155:84532", "amount": "50000", "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "payTo": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C", "maxTimeoutSeconds": 300, "extra": {"name": "USDC", "version": "2"}}, "payload": {"authorization": {"from": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "to": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C", "value": "50000", "validAfter": "0", "validBefore": "1750000300", "nonce": "0x01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3da"}, "signature": "0x37ee65cd4e139b9478e44acabdd5f6802993591aaeb2f01a38b38069ba9501a513649d70b1d7e4b6ffa34836f9d218bdee8263d490cbe1fca234446e13c137801b"}, "resource": {"url": "mcp://tool/bds_mpp_ethPrice", "serviceName": null}, "extensions": null}"#,
    )
    .unwrap()
}

/// A payment of version 1.
fn first_version() -> Value {
    json!({"x402Version": 1, "scheme": "exact", "network": "base-sepolia", "payload": payment()["payload"]})
}

/// Calls the tool with this `_meta`.
async fn pay(session: &Session, meta: Value) -> CallToolResult {
    let Value::Object(meta) = meta else { panic!("_meta is an object") };
    let mut call = request(CALL, json!({}));
    call.meta = Some(RequestMetaObject::from(meta));
    session.mcp.call_tool(call).await.unwrap()
}

fn meta(result: &CallToolResult, name: &str) -> Value {
    result.meta.as_ref().and_then(|meta| meta.get(name)).cloned().unwrap_or_default()
}

fn header(script: &Script, name: &str) -> Option<String> {
    let requests = script.requests();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    assert!(request.headers().get(name).is_none_or(http::HeaderValue::is_sensitive));
    assert!(!format!("{:?}", request.headers()).contains("eyJ"), "a payment is not printed");
    request.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn offers_are_in_the_form_that_clients_of_x402_read() {
    let body = r#"{"error":"insufficient_credits","message":"Pay.","credit_balance":0.10,"x402Version":1,"accepts":[{"maxAmountRequired":"1"}],"plans":[{"credits":10.00}]}"#;
    let script = Script::default().then(response(402, &[("payment-required", REQUIRED)], body));
    let result = Session::start(&script).await.call(CALL, json!({})).await;
    let form = error(&result);
    assert_eq!((&form["x402Version"], &form["error"]), (&json!(2), &json!("insufficient_credits")));
    assert_eq!(
        form["resource"],
        json!({"url": format!("mcp://tool/{CALL}"), "description": "Price", "mimeType": "application/json"})
    );
    assert_eq!((&form["accepts"][0]["amount"], form["accepts"].as_array().unwrap().len()), (&json!("50000"), 1));
    let extensions = form["extensions"].as_object().unwrap();
    assert_eq!((extensions.len(), &extensions["bazaar"]["info"]["input"]["toolName"]), (1, &json!(CALL)));
    // The rest is unchanged.
    let start = r#"{"error":"insufficient_credits","message":"Pay.","credit_balance":0.10,"plans":[{"credits":10.00}],"x402Version":2,"#;
    assert!(text(&result).starts_with(start), "{}", text(&result));
    assert_eq!(result.meta, None);
}

#[tokio::test]
async fn offers_of_others_and_unreadable_ones_are_not_passed_on_as_the_services() {
    let own = r#"{"error":"key_scope","message":"No.","accepts":[]}"#;
    // status, header, body
    for (status, header, body) in [
        (403, REQUIRED, own),
        (402, "not base64", own),
        (402, "e30=", own),
        (402, REQUIRED, r#"{"x402Version":2,"error":"Payment required","accepts":[{}]}"#),
    ] {
        let script = Script::default().then(response(status, &[("payment-required", header)], body));
        let result = Session::start(&script).await.call(CALL, json!({})).await;
        assert!(!error(&result).contains_key("resource"), "{status} {header} {body}");
    }
}

#[tokio::test]
async fn a_payment_becomes_a_header_and_its_outcome_comes_back() {
    let script = Script::default().then(response(200, &[("payment-response", SETTLED)], "{}"));
    let session = Session::start(&script).await;
    let result = pay(&session, json!({"x402/payment": payment(), "progressToken": 7})).await;
    assert_eq!(success(&result)["data"], json!({}));
    let settled = meta(&result, "x402/payment-response");
    assert_eq!((&settled["success"], &settled["extra"]["account"]), (&json!(true), &json!("org_1")));
    let sent = header(&script, "payment-signature").unwrap();
    assert_eq!(PaymentPayload::parse(&sent), PaymentPayload::from_value(&payment()));

    let script = Script::default().then(response(200, &[("x-payment-response", SETTLED)], "{}"));
    let result = pay(&Session::start(&script).await, json!({"x402/payment": first_version()})).await;
    assert_eq!(meta(&result, "x402/payment-response")["success"], true);
    let sent = header(&script, "x-payment").unwrap();
    assert_eq!(PaymentPayloadV1::parse(&sent), PaymentPayloadV1::from_value(&first_version()));
}

#[tokio::test]
async fn challenges_of_mpp_are_beside_the_offers() {
    let own = r#"{"error":"insufficient_credits","message":"Pay."}"#;
    let script = Script::default()
        .then(response(402, &[("payment-required", REQUIRED), ("www-authenticate", CHALLENGE)], own))
        .then(response(402, &[("www-authenticate", CHALLENGE)], own));
    let session = Session::start(&script).await;
    let challenges = meta(&session.call(CALL, json!({})).await, "org.paymentauth/payment-required");
    assert_eq!(challenges["challenges"][0]["request"], json!({"amount": "5"}), "{challenges}");
    assert_eq!(script.requests()[0].headers()["accept-payment"], "evm/charge");
    assert_eq!(session.call(CALL, json!({})).await.meta, None, "an upstream's challenge is not the service's");
}

fn rpc_error(failed: ServiceError) -> ErrorData {
    let ServiceError::McpError(error) = failed else { panic!("{failed:?}") };
    error
}

#[tokio::test]
async fn clients_with_the_capability_of_mpp_get_challenges_as_errors() {
    let own = r#"{"error":"insufficient_credits","message":"Pay.","required":0.02}"#;
    let offered = [("payment-required", REQUIRED), ("www-authenticate", CHALLENGE)];
    let script = Script::default()
        .then(response(402, &offered, own))
        .then(response(402, &[("payment-required", REQUIRED)], own))
        .then(response(503, &[], r#"{"error":"settlement_pending","message":"Send it again."}"#));
    let capabilities = json!({"experimental": {"payment": {"methods": {"evm": {"intents": ["charge"]}}}}});
    let agent = Implementation::new("agent", "1");
    let agent = InitializeRequestParams::new(serde_json::from_value(capabilities).unwrap(), agent);
    let mcp = connect_as(agent, server(&script, &ApiKey::generate(&SystemRandomness))).await;
    let refused = rpc_error(mcp.call_tool(request(CALL, json!({}))).await.unwrap_err());
    let data = refused.data.unwrap();
    assert_eq!((refused.code.0, &data["httpStatus"]), (-32_042, &json!(402)));
    assert_eq!(data["challenges"][0]["request"], json!({"amount": "5"}), "{data}");
    assert_eq!(data["problem"]["type"], "https://paymentauth.org/problems/payment-required");
    // The complete refusal is kept.
    assert_eq!((&data["error"], &data["required"]), (&json!("insufficient_credits"), &json!(0.02)));
    assert_eq!((&data["problem"]["detail"], &data["accepts"][0]["amount"]), (&json!("Pay."), &json!("50000")));
    // Without challenges it is a result.
    for code in ["insufficient_credits", "settlement_pending"] {
        let result = mcp.call_tool(request(CALL, json!({}))).await.unwrap();
        assert_eq!(error(&result)["error"], code);
    }
}

#[tokio::test]
async fn a_credential_of_mpp_that_is_refused_is_an_error_with_another_challenge() {
    let refused = r#"{"error":"payment_refused","message":"The payment is not valid."}"#;
    let offered = [("payment-required", REQUIRED), ("www-authenticate", CHALLENGE)];
    let script = Script::default().then(response(402, &offered, refused)).then(response(
        503,
        &[("retry-after", "3")],
        r#"{"error":"settlement_pending","message":"Send it again."}"#,
    ));
    let session = Session::start(&script).await;
    let vector: Value = serde_json::from_str(MPP_VECTOR).unwrap();
    let pay_with = |credential: &Value| {
        let mut call = request(CALL, json!({}));
        let meta = json!({"org.paymentauth/credential": credential});
        call.meta = Some(RequestMetaObject::from(meta.as_object().unwrap().clone()));
        session.mcp.call_tool(call)
    };
    let error_of_rpc = rpc_error(pay_with(&vector["credential"]).await.unwrap_err());
    let data = error_of_rpc.data.unwrap();
    assert_eq!((error_of_rpc.code.0, &data["challenges"][0]["id"]), (-32_043, &json!("c1")));
    assert_eq!(data["failure"], json!({"reason": "payment_refused", "detail": "The payment is not valid."}));
    assert!(script.requests()[0].headers()["authorization"].to_str().unwrap().starts_with("Payment "));
    // Nothing may be paid again.
    assert_eq!(error(&pay_with(&vector["credential"]).await.unwrap())["error"], "settlement_pending");
    // Unreadable values are not sent.
    for broken in [json!("base64"), json!({"challenge": {}})] {
        let error_of_rpc = rpc_error(pay_with(&broken).await.unwrap_err());
        assert_eq!(error_of_rpc.code.0, -32_602);
        let detail = error_of_rpc.data.unwrap()["detail"].to_string();
        assert!(detail.contains("org.paymentauth/credential") && detail.contains("Nothing was taken."), "{detail}");
    }
    assert_eq!(script.requests().len(), 1, "the second call");
}

#[tokio::test]
async fn a_payment_that_failed_comes_with_its_reason_and_without_content() {
    let refused = r#"{"error":"payment_refused","message":"The payment is not valid.","x402Version":1,"accepts":[{}]}"#;
    let pending = r#"{"error":"settlement_pending","message":"Send it again.","retry_after_sec":3}"#;
    let script = Script::default()
        .then(response(402, &[("payment-required", REQUIRED), ("payment-response", PENDING)], refused))
        .then(response(503, &[("retry-after", "3"), ("payment-response", PENDING)], pending));
    let session = Session::start(&script).await;
    let result = pay(&session, json!({"x402/payment": payment()})).await;
    assert_eq!((&error(&result)["error"], &error(&result)["x402Version"]), (&json!("payment_refused"), &json!(2)));
    assert_eq!(meta(&result, "x402/payment-response")["success"], false);
    assert!(!error(&result).contains_key("data"));
    let result = pay(&session, json!({"x402/payment": payment()})).await;
    assert_eq!(error(&result)["error"], "settlement_pending");
    assert!(!error(&result).contains_key("accepts"), "nothing to pay again");
    assert_eq!(meta(&result, "x402/payment-response")["errorReason"], "settlement_pending");
}

#[tokio::test]
async fn a_call_without_a_payment_has_no_outcome_of_one() {
    for nothing in [json!({}), json!({"x402/payment": null})] {
        let script = Script::default().then(response(200, &[("payment-response", SETTLED)], "{}"));
        let result = pay(&Session::start(&script).await, nothing).await;
        assert_eq!(result.meta, None);
        assert_eq!(header(&script, "payment-signature"), None);
    }
}

#[tokio::test]
async fn a_payment_that_cannot_be_read_is_refused_before_anything_is_sent() {
    let mut without_signature = payment();
    without_signature["payload"]["signature"] = Value::Null;
    for broken in [json!("eyJ4"), json!([]), json!({}), json!({"x402Version": 3}), without_signature] {
        let script = Script::default();
        let result = pay(&Session::start(&script).await, json!({"x402/payment": broken})).await;
        assert_eq!(error(&result)["error"], "validation_failed", "{broken}");
        let message = error(&result)["message"].as_str().unwrap();
        assert!(message.contains("x402/payment") && message.ends_with("Nothing was taken."), "{message}");
        assert!(script.requests().is_empty(), "{broken}");
    }
    // Free tools need no payment, so they do not read it.
    let script = Script::default().then(response(200, &[], r#"{"plans":[]}"#));
    let mut plans = request("list_plans", json!({}));
    plans.meta = Some(RequestMetaObject::from(json!({"x402/payment": 1}).as_object().unwrap().clone()));
    let result = Session::start(&script).await.mcp.call_tool(plans).await.unwrap();
    assert_eq!(success(&result)["plans"], json!([]));
}

#[tokio::test]
async fn the_bound_on_a_call_goes_to_the_gateway() {
    // argument, header
    for (bound, sent) in [
        (json!("0.01"), Some("0.01")),
        (json!(0.01), Some("0.01")),
        (json!(1e-5), Some("0.00001")),
        (json!(2), Some("2")),
        (json!(null), None),
    ] {
        let script = Script::default().then(charged("{}"));
        let result = Session::start(&script).await.call(CALL, json!({"max_cost": bound})).await;
        assert_eq!(result.is_error, Some(false), "{bound}");
        let requests = script.requests();
        assert_eq!(requests[0].headers().get("max-cost").map(|value| value.to_str().unwrap()), sent, "{bound}");
        assert_eq!(requests[0].uri(), "/mpp/ethPrice", "it is not a parameter of the route");
    }
    for bound in [json!("cheap"), json!("-1"), json!(-0.5), json!(true), json!("1,5")] {
        let result = Session::start(&Script::default()).await.call(CALL, json!({"max_cost": bound})).await;
        let problem = "must be an amount of credits, zero or more, such as 0.01";
        assert_eq!(error(&result)["fields"]["max_cost"], problem, "{bound}");
    }
}
