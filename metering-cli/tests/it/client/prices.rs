//! `metering plans` and `metering routes`: what is for sale.

use super::client;
use crate::program::{Program, one_space};
use crate::stand_in::{Reply, StandIn};

/// With spaces and an order that no JSON printer would produce.
const PLANS: &str = r#"{ "terms_url":"https://pay.example/terms",  "plans":[
{"id":"starter","chain_id":8453,"token_symbol":"USDC","payment_kind":"erc20","credits":5.00,"bonus_credits":0.5,
"token_amount":"5","token_contract":"0x0","token_decimals":6,"label":"Starter\u001b[2J","description":"d",
"buys":["about 500 searches","100 reports"],"discount_percent":10,"active":true,"recipient":"0x1","rpc_url":""},
{"id":"coin","chain_id":77,"token_symbol":"ETH","payment_kind":"native_value","credits":123456789012.1234567891,
"bonus_credits":0,"token_amount":"0.0025","label":"Coin"}],
"chains":[{"chain_id":8453,"name":"Base"}], "later":[1.10] }"#;

/// A catalogue with one route for each kind of price.
pub(crate) const CATALOGUE: &str = r#"{"market":"M", "version":1,"endpoints":[
{"path":"/mpp/ethPrice","method":"GET","metered":true,"sse":false,"description":"ETH price","params":[],"credit_weight":5},
{"path":"/mpp/token/{name}","method":"GET","metered":true,"sse":false,"description":"A token","credit_weight":1,
"params":[{"name":"name","in":"path","type":"string","required":true},
{"name":"q","in":"query","type":"string","required":true},{"name":"limit","in":"query","type":"integer","required":false}]},
{"path":"/mpp/stream","method":"GET","metered":true,"sse":true,"description":"Trades","params":[],"credit_weight":1,
"billing_modifier":{"type":"stream_session","credits_per_connection":0.25}},
{"path":"/mpp/history/{seconds}","method":"GET","metered":true,"sse":false,"description":"Old trades","credit_weight":1,
"params":[{"name":"seconds","in":"path","type":"integer","required":true}],
"billing_modifier":{"type":"lookback_multiplier","param":"seconds","tiers":[{"max_seconds":60,"multiplier":1}],"overflow_multiplier":4}}]}"#;

/// What is printed of a document, for people and for programs. No key is sent for it.
fn printed(command: &str, path: &str, document: &str) -> Vec<String> {
    let (program, service) = client([(path, Reply::ok(document.to_owned()))]);
    let text = program.run(command).success();
    assert_eq!(program.run(&format!("{command} --json")).success(), format!("{document}\n"));
    let request = &service.requests()[0];
    assert_eq!((request.key(), request.header("x-bds-client-source")), (None, Some("cli")));
    text.lines().map(one_space).collect()
}

#[test]
fn plans_are_a_table_for_people_and_the_services_own_bytes_for_programs() {
    let expected = [
        "PLAN CHAIN PRICE CREDITS BONUS DISCOUNT LABEL BUYS",
        "starter Base (8453) 5 USDC 5.00 0.5 10 % Starter\u{fffd}[2J about 500 searches or 100 reports",
        "coin 77 0.0025 ETH 123456789012.1234567891 0 Coin",
        "",
        "Terms https://pay.example/terms",
    ];
    assert_eq!(printed("plans", "/credits/plans", PLANS), expected);
    let service = StandIn::start();
    service.on("/credits/plans", Reply::ok(r#"{"plans":[],"chains":[]}"#));
    let ran = Program::new().run(&format!("plans --url {}", service.url())).expect(0);
    assert!(ran.stderr == "No plans are on sale.\n" && ran.stdout.starts_with("PLAN"), "{ran:?}");
}

#[test]
fn routes_are_listed_with_what_they_take_and_cost() {
    let expected = [
        "METHOD ROUTE CREDITS DESCRIPTION",
        "GET /mpp/ethPrice 0.0006944444 ETH price",
        "GET /mpp/token/{name}?q=TEXT[&limit=INTEGER] 0.0001388889 A token",
        "GET /mpp/stream 0.25 per connection Trades",
        "GET /mpp/history/{seconds} from 0.0001388889, by seconds Old trades",
    ];
    assert_eq!(printed("routes", "/endpoints.json", CATALOGUE), expected);
    let route = |path: &str, price: &str| {
        format!(r#"{{"path":"{path}","method":"POST","metered":true,"description":"Chat","price":{price}}}"#)
    };
    let by_usage = r#"{"max":"0.5","units":{"tokens":"0.00000025"},"report":{"json":{"tokens":"/usage/total"}}}"#;
    let routes = [route("/chat", by_usage), route("/newer", r#"{"most":{"eur":1}}"#)].join(",");
    let catalogue = format!(r#"{{"market":"M","version":1,"endpoints":[{routes}]}}"#);
    let expected =
        ["POST /chat [JSON] up to 0.5 credits: tokens 0.00000025 each Chat", "POST /newer [JSON] unknown Chat"];
    assert_eq!(printed("routes", "/endpoints.json", &catalogue)[1..], expected);
}

#[test]
fn invalid_catalogue_is_a_failure() {
    let without_fields = r#"{"market":"M","version":1,"endpoints":[{"path":"x","method":"GET","metered":true}]}"#;
    for body in ["", "<html></html>", "{}", without_fields] {
        let (program, _service) = client([("/endpoints.json", Reply::ok(body))]);
        program.refuses(&[("routes", 1, "not a catalogue")]);
    }
}
