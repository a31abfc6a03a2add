//! `metering routes`.

use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

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

#[test]
fn routes_are_listed_with_what_they_take_and_cost() {
    let service = StandIn::start();
    service.on("/endpoints.json", Reply::ok(CATALOGUE));
    let (home, _) = Home::of(&service);
    let text = home.metering(&["routes"]).success();
    let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines,
        [
            "METHOD ROUTE CREDITS DESCRIPTION",
            "GET /mpp/ethPrice 0.0006944444 ETH price",
            "GET /mpp/token/{name}?q=TEXT[&limit=INTEGER] 0.0001388889 A token",
            "GET /mpp/stream 0.25 per connection Trades",
            "GET /mpp/history/{seconds} from 0.0001388889, by seconds Old trades",
        ]
    );
    assert_eq!(service.requests()[0].header("authorization"), None);
    assert_eq!(home.metering(&["routes", "--json"]).success(), format!("{CATALOGUE}\n"));
}

#[test]
fn prices_by_usage_are_listed() {
    let service = StandIn::start();
    let route = |path: &str, price: &str| {
        format!(r#"{{"path":"{path}","method":"POST","metered":true,"description":"Chat","price":{price}}}"#)
    };
    let by_usage = r#"{"max":"0.5","units":{"tokens":"0.00000025"},"report":{"json":{"tokens":"/usage/total"}}}"#;
    let routes = [route("/chat", by_usage), route("/newer", r#"{"most":{"eur":1}}"#)].join(",");
    let catalogue = format!(r#"{{"market":"M","version":1,"endpoints":[{routes}]}}"#);
    service.on("/endpoints.json", Reply::ok(catalogue));
    let text = Home::of(&service).0.metering(&["routes"]).success();
    let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected =
        ["POST /chat [JSON] up to 0.5 credits: tokens 0.00000025 each Chat", "POST /newer [JSON] unknown Chat"];
    assert_eq!(lines[1..], expected);
}

#[test]
fn invalid_catalogue_is_a_failure() {
    for body in [
        "",
        "<html></html>",
        "{}",
        r#"{"market":"M","version":1,"endpoints":[{"path":"x","method":"GET","metered":true}]}"#,
    ] {
        let service = StandIn::start();
        service.on("/endpoints.json", Reply::ok(body));
        let message = Home::new().metering(&["routes", "--url", &service.url()]).failure(1);
        assert!(message.contains("not a catalogue"), "{message}");
    }
}
