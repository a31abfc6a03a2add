//! Tool calls that the published MCP clients of MPP pay for, unchanged. That of `pympp` reads challenges in errors of JSON-RPC
//! only, which it gets because its connection has the header `Accept-Payment`.

use std::process::Command;

use metering_tests::chain::account::Account;
use metering_tests::worker;
use serde_json::{Value, json};

use super::market::{Market, OFFER, PURSE, UNITS, folder};
use crate::mcp::BASE_TOOL;
use crate::support::wire::{BASE_CALL, amount, balance};

/// A published client, and how it connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    /// npm `mppx` over Streamable HTTP.
    Mppx,
    /// PyPI `pympp` over Streamable HTTP.
    Pympp,
    /// PyPI `pympp` over HTTP+SSE.
    PymppSse,
}

/// Calls the base tool so many times in one session. Each result has `error`, `structured` and `receipt`, or the `code` and
/// `data` of the error that a call with a payment got.
#[track_caller]
fn call(market: &Market, client: Client, payer: &Account, headers: &Value, calls: u32) -> Vec<Value> {
    let url = format!("http://{}", market.server.address());
    let transport = if client == Client::PymppSse { "sse" } else { "streamable" };
    let request = json!({"transport": transport, "url": url, "payerKey": payer.private_key(), "headers": headers,
        "tool": BASE_TOOL, "arguments": {}, "calls": calls});
    let mut program = match client {
        Client::Mppx => Command::new("node"),
        Client::Pympp | Client::PymppSse => worker::python("mpp-venv", &folder().join("mpp/call_mcp.py")),
    };
    if client == Client::Mppx {
        program.arg(folder().join("mpp/call_mcp.mjs"));
    }
    let results = worker::ask(&mut program, &request).unwrap_or_else(|error| panic!("{client:?}: {error}"));
    results.as_array().unwrap().clone()
}

/// Checks a call that was paid: it has a receipt with the transaction.
#[track_caller]
fn assert_paid(market: &Market, result: &Value, left: &str) {
    assert_eq!(result["error"], false, "{result}");
    assert_eq!(result["structured"]["credit_balance"].to_string(), left, "{result}");
    let receipt = &result["receipt"];
    assert_eq!((&receipt["status"], &receipt["method"]), (&json!("success"), &json!("evm")), "{result}");
    let transaction = market.chain.rpc("eth_getTransactionReceipt", json!([receipt["reference"]]));
    assert_eq!(transaction["status"], "0x1", "{receipt}");
}

#[test]
fn client_with_a_key_pays_once_and_then_from_its_balance() {
    let Some(market) = Market::open() else { return };
    for client in [Client::Mppx, Client::Pympp, Client::PymppSse] {
        let (payer, account) = (market.payer(), market.site.account("0"));
        let headers = json!({"Accept-Payment": "evm/charge", "Authorization": format!("Bearer {}", account.api_key)});
        let calls = call(&market, client, &payer, &headers, 2);
        assert_paid(&market, &calls[0], &amount(OFFER - BASE_CALL));
        assert_eq!((&calls[1]["error"], &calls[1]["receipt"]), (&json!(false), &Value::Null), "{calls:?}");
        assert_eq!(balance(&market.server.client_with(&account.api_key)), amount(OFFER - 2 * BASE_CALL), "{client:?}");
        assert_eq!(market.held_by(&payer), PURSE - UNITS, "{client:?}");
    }
}

#[test]
fn client_without_a_key_pays_each_call() {
    let Some(market) = Market::open() else { return };
    // That of `mppx` also reads challenges in results.
    for (client, headers) in [
        (Client::Pympp, json!({"Accept-Payment": "evm/charge"})),
        (Client::Mppx, json!({"Accept-Payment": "evm/charge"})),
        (Client::Mppx, json!({})),
    ] {
        let payer = market.payer();
        let calls = call(&market, client, &payer, &headers, 2);
        assert_paid(&market, &calls[0], &amount(OFFER - BASE_CALL));
        assert_paid(&market, &calls[1], &amount(2 * (OFFER - BASE_CALL)));
        assert_eq!(market.held_by(&payer), PURSE - 2 * UNITS, "{client:?} {headers}");
    }
}

#[test]
fn payment_that_fails_is_an_error_and_a_call_that_shows_nothing_of_mpp_gets_a_result() {
    let Some(market) = Market::open() else { return };
    let poor = market.chain.wallet().poor_account();
    let refused = call(&market, Client::Pympp, &poor, &json!({"Accept-Payment": "evm/charge"}), 1).remove(0);
    assert_eq!((&refused["code"], &refused["data"]["failure"]["reason"]), (&json!(-32_043), &json!("payment_refused")));
    assert_eq!(refused["data"]["challenges"][0]["request"]["amount"], UNITS.to_string(), "{refused}");
    let payer = market.payer();
    let refused = call(&market, Client::Pympp, &payer, &json!({}), 1).remove(0);
    assert_eq!((&refused["error"], &refused["structured"]["error"]), (&json!(true), &json!("payment_required")));
    assert!(refused["structured"]["accepts"].is_array(), "{refused}");
    market.assert_paid(&payer, 0);
}
