//! Tool calls that are paid for: with the published MCP client of x402, unchanged, and as raw messages.

use metering_tests::chain::account::Account;
use metering_tests::chain::wallet::authorizations::TransferAuthorization;
use metering_tests::client::Client;
use metering_tests::worker;
use serde_json::{Value, json};

use super::market::{CHAIN_ID, Market, OFFER, PURSE, Terms, UNITS, chain, folder};
use crate::mcp::http::{initialize, post, sse_session, streamable_session};
use crate::mcp::{BASE_TOOL, STREAM_TOOL};
use crate::support::wait::until;
use crate::support::wire::{BASE_CALL, CREDIT, amount, balance};

/// How the client connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    /// `x402MCPSession` over Streamable HTTP.
    Streamable,
    /// `x402MCPSession` over HTTP+SSE.
    Sse,
    /// `create_x402_mcp_client`, which connects over HTTP+SSE and sends no key.
    Stock,
}

/// Calls a tool so many times in one session. Each result has `error`, `paid`, `structured`, `text` and `receipt`.
#[track_caller]
fn call(
    market: &Market,
    connection: Connection,
    payer: &Account,
    key: Option<&str>,
    tool: &str,
    arguments: &Value,
    calls: u32,
) -> Vec<Value> {
    let transport = match connection {
        Connection::Streamable => "streamable",
        Connection::Sse => "sse",
        Connection::Stock => "stock",
    };
    let url = format!("http://{}", market.server.address());
    let request = json!({"transport": transport, "url": url, "payerKey": payer.private_key(), "apiKey": key,
        "tool": tool, "arguments": arguments, "calls": calls});
    let answered = worker::ask(&mut worker::python("x402-venv", &folder().join("call_mcp.py")), &request);
    let results = answered.unwrap_or_else(|error| panic!("{connection:?}: {error}"));
    let results = results.as_array().unwrap().clone();
    for result in &results {
        let text: Value = serde_json::from_str(result["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structured"], "the text is the same JSON");
    }
    results
}

/// Checks a call that was paid, and returns the account that its receipt names.
#[track_caller]
fn assert_paid(result: &Value, left: &str) -> String {
    assert_eq!((&result["error"], &result["paid"]), (&json!(false), &json!(true)), "{result}");
    let receipt = &result["receipt"];
    assert_eq!((&receipt["success"], &receipt["network"]), (&json!(true), &json!("eip155:84532")), "{result}");
    assert_eq!(receipt["extra"]["credit_balance"], left, "{result}");
    assert_eq!(result["structured"]["credit_balance"].to_string(), left, "{result}");
    receipt["extra"]["account"].as_str().unwrap().to_owned()
}

#[test]
fn client_pays_with_a_key_and_without_and_gets_nothing_for_a_payment_that_fails() {
    let Some(market) = Market::open() else { return };
    for connection in [Connection::Streamable, Connection::Sse] {
        let (payer, account) = (market.payer(), market.site.account("0"));
        let key = Some(account.api_key.as_str());
        let calls = call(&market, connection, &payer, key, BASE_TOOL, &json!({}), 2);
        assert_eq!(assert_paid(&calls[0], &amount(OFFER - BASE_CALL)), account.org_id, "{connection:?}");
        assert!(calls[0]["structured"]["data"]["block_number"].is_u64(), "{calls:?}");
        assert_eq!((&calls[1]["paid"], &calls[1]["error"]), (&json!(false), &json!(false)), "{calls:?}");
        assert!(calls[1]["receipt"].is_null(), "{calls:?}");
        let arguments = json!({"max_events": 2});
        let stream = call(&market, connection, &payer, key, STREAM_TOOL, &arguments, 1).remove(0);
        assert_eq!((&stream["paid"], &stream["structured"]["data"]["count"]), (&json!(false), &json!(2)), "{stream}");
        let left = amount(OFFER - 2 * BASE_CALL - CREDIT / 100);
        assert_eq!(balance(&market.server.client_with(&account.api_key)), left);
        assert_eq!(market.held_by(&payer), PURSE - UNITS, "{connection:?}");
    }
    // Without a key, the payment is credited to the wallet's account.
    for connection in [Connection::Streamable, Connection::Stock] {
        let payer = market.payer();
        let calls = call(&market, connection, &payer, None, BASE_TOOL, &json!({}), 2);
        let first = assert_paid(&calls[0], &amount(OFFER - BASE_CALL));
        assert_eq!(assert_paid(&calls[1], &amount(2 * (OFFER - BASE_CALL))), first, "{connection:?}");
        let arguments = json!({"max_events": 1});
        let stream = call(&market, connection, &payer, None, STREAM_TOOL, &arguments, 1).remove(0);
        let left = 3 * OFFER - 2 * BASE_CALL - CREDIT / 100;
        assert_eq!(assert_paid(&stream, &amount(left)), first, "{connection:?}");
        assert_eq!(market.held_by(&payer), PURSE - 3 * UNITS, "{connection:?}");
    }
    let (poor, account) = (market.chain.wallet().poor_account(), market.site.account("0"));
    let key = Some(account.api_key.as_str());
    let refused = call(&market, Connection::Streamable, &poor, key, BASE_TOOL, &json!({}), 1).remove(0);
    assert_eq!((&refused["error"], &refused["paid"]), (&json!(true), &json!(true)), "{refused}");
    assert_eq!(refused["structured"]["error"], "payment_refused", "{refused}");
    assert!(refused["structured"]["data"].is_null() && refused["structured"]["accepts"].is_array(), "{refused}");
    assert_eq!(refused["structured"]["extensions"]["bazaar"]["info"]["input"]["toolName"], BASE_TOOL, "{refused}");
    assert_eq!(refused["receipt"]["success"], false, "{refused}");
}

#[test]
fn call_that_costs_more_than_it_may_is_neither_charged_nor_paid() {
    let Some(market) = Market::open() else { return };
    let (payer, account) = (market.payer(), market.site.account("0"));
    for key in [Some(account.api_key.as_str()), None] {
        for (tool, max_cost, price) in [(BASE_TOOL, "0.0001", "0.0001388889"), (STREAM_TOOL, "0.0099", "0.01")] {
            let arguments = json!({"max_cost": max_cost});
            let refused = call(&market, Connection::Streamable, &payer, key, tool, &arguments, 1).remove(0);
            assert_eq!((&refused["error"], &refused["paid"]), (&json!(true), &json!(false)), "{refused}");
            let error = &refused["structured"];
            assert_eq!(error["error"], "max_cost_exceeded", "{refused}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(price) && message.contains(max_cost), "{message}");
            assert_eq!((error["required"].to_string(), error["max_cost"].to_string()), (price.into(), max_cost.into()));
        }
    }
    market.assert_paid(&payer, 0);
    // The printed price is enough.
    let arguments = json!({"max_cost": "0.0001388889"});
    let calls = call(&market, Connection::Streamable, &payer, Some(&account.api_key), BASE_TOOL, &arguments, 1);
    assert_paid(&calls[0], &amount(OFFER - BASE_CALL));
    market.assert_paid(&payer, UNITS);
}

#[test]
fn unconfirmed_payment_of_a_call_offers_nothing() {
    let Some(chain) = chain(metering_tests::chain::Chain::setup()) else { return };
    let market = Market::on(chain, &Terms { more: "wait = '1s'\n".to_owned(), ..Terms::default() });
    market.wait_for_offers();
    let (payer, account) = (market.payer(), market.site.account("0"));
    market.chain.set_automine(false);
    let key = Some(account.api_key.as_str());
    let pending = call(&market, Connection::Streamable, &payer, key, BASE_TOOL, &json!({}), 1).remove(0);
    assert_eq!(pending["structured"]["error"], "settlement_pending", "{pending}");
    assert!(pending["structured"]["accepts"].is_null(), "{pending}");
    assert_eq!(pending["receipt"]["errorReason"], "settlement_pending", "{pending}");
    market.chain.mine(1);
    market.chain.set_automine(true);
    let customer = market.server.client_with(&account.api_key);
    until("the payment is credited", || balance(&customer) == amount(OFFER));
    market.assert_paid(&payer, UNITS);
}

/// A call of the base tool with this `_meta`.
fn message(id: u64, meta: &Value) -> Value {
    let params = json!({"name": BASE_TOOL, "arguments": {}, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// The result of a call over Streamable HTTP.
#[track_caller]
fn result(client: &Client, meta: &Value) -> Value {
    post(client, "/mcp", &message(1, meta)).expect(200).json()["result"].take()
}

/// Payments of this wallet for the cheapest offer, in versions 2 and 1, with nulls where clients write them.
fn payments(market: &Market, payer: &Account, nonce: u8) -> [Value; 2] {
    let transfer = TransferAuthorization {
        from: payer.address(),
        to: market.recipient.address(),
        value: UNITS,
        valid_after: 0,
        valid_before: market.chain.block_time() + 300,
        nonce: format!("0x{}", format!("{nonce:02x}").repeat(32)),
    };
    let signature = market.chain.wallet().sign_transfer(payer, CHAIN_ID, &transfer);
    let payload = json!({"signature": signature, "authorization": {
        "from": transfer.from, "to": transfer.to, "value": transfer.value.to_string(), "validAfter": "0",
        "validBefore": transfer.valid_before.to_string(), "nonce": transfer.nonce}});
    let offer =
        result(&streamable_session(&market.server.client()), &json!({}))["structuredContent"]["accepts"][0].take();
    let resource = json!({"url": format!("mcp://tool/{BASE_TOOL}"), "serviceName": null, "tags": null});
    [
        json!({"x402Version": 2, "accepted": offer, "payload": payload, "resource": resource, "extensions": null}),
        json!({"x402Version": 1, "scheme": "exact", "network": "base-sepolia", "payload": payload}),
    ]
}

#[test]
fn raw_messages_are_paid_in_both_versions_and_malformed_payments_are_named() {
    let Some(market) = Market::open() else { return };
    let (payer, account) = (market.payer(), market.site.account("0"));
    let client = streamable_session(&market.server.client_with(&account.api_key));
    let [second, _] = payments(&market, &payer, 1);
    let [_, first] = payments(&market, &payer, 2);
    // Nulls are as good as nothing.
    let unpaid = result(&client, &json!({"x402/payment": null, "progressToken": null}));
    assert_eq!((&unpaid["isError"], &unpaid["structuredContent"]["x402Version"]), (&json!(true), &json!(2)));
    assert_eq!(unpaid["structuredContent"]["resource"]["url"], format!("mcp://tool/{BASE_TOOL}"));
    assert_eq!(unpaid["structuredContent"]["error"], "insufficient_credits");
    // Challenges of MPP are next to the offers; nothing was paid yet.
    assert_eq!(unpaid["_meta"]["org.paymentauth/payment-required"]["challenges"][0]["request"]["amount"], "50000");
    assert!(unpaid["_meta"]["x402/payment-response"].is_null(), "{unpaid}");
    let mut unsigned = second.clone();
    unsigned["payload"]["signature"] = json!(null);
    for (broken, part) in [
        (json!("eyJ4NDAyVmVyc2lvbiI6Mn0="), "must be a JSON object"),
        (json!({"x402Version": 2}), "accepted"),
        (json!({"x402Version": 7}), "x402Version"),
        (unsigned, "payload.signature"),
    ] {
        let refused = result(&client, &json!({ "x402/payment": broken }));
        assert_eq!(refused["structuredContent"]["error"], "validation_failed", "{refused}");
        let text = refused["structuredContent"]["message"].as_str().unwrap();
        assert!(text.contains(part) && text.ends_with("Nothing was taken."), "{text}");
    }
    market.assert_paid(&payer, 0);
    for (count, payment) in [(1, &second), (2, &first)] {
        let paid = result(&client, &json!({ "x402/payment": payment }));
        let settled = &paid["_meta"]["x402/payment-response"];
        assert_eq!((&paid["isError"], &settled["success"]), (&json!(false), &json!(true)), "{paid}");
        assert_eq!(settled["extra"]["account"], account.org_id, "{paid}");
        market.assert_paid(&payer, UNITS * count);
    }
    // The same again credits nothing, and the call is charged to the balance.
    let again = result(&client, &json!({ "x402/payment": second }));
    assert_eq!(again["isError"], false, "{again}");
    market.assert_paid(&payer, 2 * UNITS);
    assert_eq!(balance(&market.server.client_with(&account.api_key)), amount(2 * OFFER - 3 * BASE_CALL));
}

#[test]
fn only_calls_that_can_be_paid_for_need_no_key() {
    let Some(market) = Market::open() else { return };
    let stranger = market.server.client();
    let session = streamable_session(&stranger);
    let listed = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert!(post(&session, "/mcp", &listed).expect(200).text().contains(BASE_TOOL));
    let refused = result(&session, &json!({}));
    assert_eq!(refused["structuredContent"]["error"], "payment_required", "{refused}");
    let own = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_credit_balance"}});
    let refused = post(&session, "/mcp", &own).expect(200).json();
    assert_eq!(refused["result"]["structuredContent"]["error"], "unauthorized", "{refused}");
    // A session without a key cannot be used with a key, and vice versa.
    let account = market.site.account("1");
    let customer = market.server.client_with(&account.api_key);
    let ((_stream, nobodys), (_other, own)) = (sse_session(&stranger), sse_session(&customer));
    assert_eq!(post(&customer, &nobodys, &listed).status, 404);
    assert_eq!(post(&stranger, &own, &listed).status, 404);
    for bad in ["Bearer sk_live_mistyped", "Bearer", "Basic eA=="] {
        let client = stranger.clone().with_header("Authorization", bad);
        for response in [post(&client, "/mcp", &initialize()), client.get("/sse")] {
            assert_eq!((response.status, response.error().as_str()), (401, "unauthorized"), "{bad}");
        }
    }
    market.site.verify();
    drop(market);
    let Some(chain) = chain(metering_tests::chain::Chain::setup()) else { return };
    let market = Market::on(chain, &Terms { more: "keyless = false\n".to_owned(), ..Terms::default() });
    let account = market.site.account("0");
    let customer = market.server.client_with(&account.api_key);
    until("the server makes offers", || {
        result(&streamable_session(&customer), &json!({}))["structuredContent"]["accepts"].is_array()
    });
    let _ = post(&market.server.client(), "/mcp", &initialize()).expect(401);
}
