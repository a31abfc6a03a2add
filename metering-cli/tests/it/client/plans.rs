//! `metering plans`.

use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

/// With spaces and an order that no JSON printer would produce.
const PLANS: &str = r#"{ "terms_url":"https://pay.example/terms",  "plans":[
{"id":"starter","chain_id":8453,"token_symbol":"USDC","payment_kind":"erc20","credits":5.00,"bonus_credits":0.5,
"token_amount":"5","token_contract":"0x0","token_decimals":6,"label":"Starter\u001b[2J","description":"d",
"discount_percent":10,"active":true,"recipient":"0x1","rpc_url":""},
{"id":"coin","chain_id":77,"token_symbol":"ETH","payment_kind":"native_value","credits":123456789012.1234567891,
"bonus_credits":0,"token_amount":"0.0025","label":"Coin"}],
"chains":[{"chain_id":8453,"name":"Base"}], "later":[1.10] }"#;

#[test]
fn plans_are_a_table_for_people() {
    let service = StandIn::start();
    service.on("/credits/plans", Reply::ok(PLANS));
    let (home, _) = Home::of(&service);
    let text = home.metering(&["plans"]).success();
    let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines,
        [
            "PLAN CHAIN PRICE CREDITS BONUS DISCOUNT LABEL",
            "starter Base (8453) 5 USDC 5.00 0.5 10 % Starter\u{fffd}[2J",
            "coin 77 0.0025 ETH 123456789012.1234567891 0 Coin",
            "",
            "terms https://pay.example/terms",
        ]
    );
    assert_eq!(service.requests()[0].header("authorization"), None, "a request that needs no key has none");
    assert_eq!(service.requests()[0].header("x-bds-client-source"), Some("cli"));
}

#[test]
fn plans_are_the_services_own_bytes_for_programs() {
    let service = StandIn::start();
    service.on("/credits/plans", Reply::ok(PLANS));
    let ran = Home::new().metering(&["plans", "--json", "--url", &service.url()]);
    assert_eq!(ran.success(), format!("{PLANS}\n"));
}

#[test]
fn empty_price_list_is_reported() {
    let service = StandIn::start();
    service.on("/credits/plans", Reply::ok(r#"{"plans":[],"chains":[]}"#));
    let ran = Home::new().metering(&["plans", "--url", &service.url()]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "No plans are on sale.\n"));
    assert!(ran.stdout.starts_with("PLAN"));
}
