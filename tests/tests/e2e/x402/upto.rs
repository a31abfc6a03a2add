//! A published client signs the maximum cost of a request, and the actual cost is transferred. Permit2 and x402's proxy
//! are stand-ins of the tests (`tests/chain/contracts`): no package that these tests use carries the code of the real
//! ones.

use metering_tests::chain::{Chain, wallet::authorizations::USDC};
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::market::{Call, Market, PURSE, Stock, Terms, chain, own};
use crate::support::script::Script;
use crate::support::wait::until;

/// A route whose responses report tokens, at 0.0001 credits each.
fn catalogue() -> String {
    let price = json!({"max": "0.02", "units": {"tokens": "0.0001"}, "report": {"json": {"tokens": "/usage/tokens"}}});
    let route = json!({"path": "/v1/chat", "method": "POST", "metered": true, "sse": true, "price": price});
    json!({"market": "TEST", "version": 1, "endpoints": [route]}).to_string()
}

/// The upstream's response, which used this many tokens.
fn response(content_type: &str, body: &str) -> Value {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n", body.len());
    json!(head + body)
}

#[test]
fn a_published_client_pays_what_it_used_on_a_real_chain() {
    let Some(chain) = chain(Chain::setup()) else { return };
    chain.wallet().place_permit2();
    let (files, upstream) = (Site::new(), Script::start());
    let terms = Terms {
        settle: Some(own(&files, &chain.wallet().new_account())),
        more: "upto = true\n".to_owned(),
        first: format!(
            "upstream = '{}'\ncatalogue = '{}'\n",
            upstream.url(),
            files.write("usage.json", &catalogue()).display()
        ),
        ..Terms::default()
    };
    let market = Market::on(chain, &terms);
    let ask = || market.server.client().post("/v1/chat", &json!({"steps": []})).status;
    until("the server makes offers", || ask() == 402);
    let wallet = market.chain.wallet();
    let payer = wallet.new_account();
    wallet.mint(USDC, &payer.address(), PURSE);
    let call = |steps: &[Value]| {
        let mut request = market.request(Stock::FetchUpto, &payer, None, "/v1/chat", 1);
        (request["method"], request["json"]) = ("POST".into(), json!({"steps": steps}));
        let calls = Call::all(&mut Stock::FetchUpto.program(), &request);
        calls.unwrap_or_else(|error| panic!("{error}")).remove(0)
    };
    let plain = [response("application/json", r#"{"usage": {"tokens": 31}}"#)];

    let refused = call(&plain);
    assert_eq!((refused.status(), refused.error()), (412, "permit2_allowance_required".to_owned()), "{refused:?}");
    assert_eq!(upstream.requests(), 0);
    wallet.approve_permit2(&payer, PURSE);

    let served = call(&plain);
    assert_eq!(served.status(), 200, "{served:?}");
    let receipt = served.receipt();
    assert_eq!((&receipt["success"], &receipt["amount"]), (&json!(true), &json!("3100")), "{receipt}");
    assert_eq!(served.balance(), Some("0"), "{served:?}");
    market.assert_paid(&payer, 3_100);

    let stream = response("text/event-stream", "data: {\"usage\": {\"tokens\": 7}}\n\n");
    let streamed = call(&[stream]);
    assert_eq!(streamed.status(), 200, "{streamed:?}");
    until("what the stream used is paid", || market.held_by(&market.recipient) == 3_800);
    let unused = call(&[response("application/json", r#"{"usage": {"tokens": 0}}"#)]);
    let receipt = unused.receipt();
    assert_eq!((&receipt["success"], &receipt["amount"]), (&json!(true), &json!("0")), "{receipt}");
    market.assert_paid(&payer, 3_800);
}
