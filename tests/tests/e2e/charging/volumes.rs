//! Routes with volume tiers: a free allowance a month, then a price.

use metering_tests::client::Client;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::support::calendar::away_from_midnight;
use crate::support::upstream::Upstream;
use crate::support::wire::balance;

const SECRET: &str = "correct horse battery staple";

/// Three requests for nothing, two for 0.25 credits, and all others for 0.125.
fn flags(site: &Site) -> [std::ffi::OsString; 2] {
    let tiers = json!([{"up_to": 3, "credits": "0"}, {"up_to": 5, "credits": "0.25"}, {"credits": "0.125"}]);
    let route = |path: &str| {
        json!({"path": path, "method": "GET", "metered": true, "price": tiers,
            "params": [{"name": "word", "in": "path", "type": "string", "required": true}]})
    };
    let routes = [route("/api/status/{word}"), route("/api/echo/{word}")];
    let catalogue = json!({"market": "TEST", "version": 1, "endpoints": routes});
    ["--catalogue".into(), site.write("catalogue.json", &catalogue.to_string()).into_os_string()]
}

fn serving(site: &Site, upstream: &Upstream) -> Server {
    site.server()
        .args(["--upstream", &upstream.url()])
        .args(flags(site))
        .set("METERING_BILLING__INTERNAL_SECRET", SECRET)
        .start()
}

/// The charge for a request, and the balance after it.
fn charged(client: &Client, path: &str) -> (String, String) {
    let response = client.get(path).expect(200);
    let header = |name| response.header(name).unwrap().to_owned();
    (header("x-bds-credit-charged"), header("x-bds-credit-balance"))
}

/// Calls left in the tier of the next request, and the price after it, of the second route.
fn tier(client: &Client) -> (Value, String) {
    let document = client.get("/credits/usage/volumes").expect(200).json();
    let route = &document["routes"][1];
    (route["tier_calls_left"].clone(), route["price_after_tier"].to_string())
}

/// Calls, free calls left and the next price of each route.
fn volumes(client: &Client) -> Vec<(Value, Value, String)> {
    let document = client.get("/credits/usage/volumes").expect(200).json();
    let routes = document["routes"].as_array().unwrap().iter();
    routes
        .map(|route| (route["call_count"].clone(), route["free_calls_left"].clone(), route["next_price"].to_string()))
        .collect()
}

#[test]
fn requests_are_priced_by_their_number_in_the_month() {
    away_from_midnight();
    let (site, upstream) = (Site::verified(), Upstream::start());
    let account = site.account("1");
    let server = serving(&site, &upstream);
    let client = server.client_with(&account.api_key);
    assert_eq!(volumes(&client)[1], (json!(0), json!(3), "0".to_owned()));
    assert_eq!(tier(&client), (json!(3), "0.25".to_owned()));
    let pair = |charged: &str, balance: &str| (charged.to_owned(), balance.to_owned());
    for _ in 0..3 {
        assert_eq!(charged(&client, "/api/echo/a"), pair("0", "1"));
    }
    assert_eq!(charged(&client, "/api/echo/b"), pair("0.25", "0.75"));
    assert_eq!(volumes(&client), [(json!(0), json!(3), "0".to_owned()), (json!(4), json!(0), "0.25".to_owned())]);
    assert_eq!(tier(&client), (json!(1), "0.125".to_owned()));
    // A server that is killed forgets nothing.
    server.kill();
    let server = serving(&site, &upstream);
    let client = server.client_with(&account.api_key);
    assert_eq!(charged(&client, "/api/echo/b"), pair("0.25", "0.5"));
    assert_eq!(charged(&client, "/api/echo/b"), pair("0.125", "0.375"));
    assert_eq!(tier(&client), (Value::Null, "null".to_owned()), "the last tier has no end");
    // The other route has its own count, and a request that was not delivered has no place in it.
    for _ in 0..5 {
        let refused = client.get("/api/status/503").expect(503);
        assert_eq!(refused.header("x-bds-credit-charged"), Some("0"));
    }
    assert_eq!(volumes(&client)[0], (json!(0), json!(3), "0".to_owned()));
}

#[test]
fn bound_is_compared_with_the_price_of_the_tier() {
    let (site, upstream) = (Site::verified(), Upstream::start());
    let account = site.account("1");
    let server = serving(&site, &upstream);
    let nothing = server.client_with(&account.api_key).with_header("Max-Cost", "0");
    for _ in 0..3 {
        let _ = nothing.get("/api/echo/a").expect(200);
    }
    let refused = nothing.get("/api/echo/a").expect(412);
    assert_eq!(
        (refused.error(), refused.json()["required"].to_string()),
        ("max_cost_exceeded".to_owned(), "0.25".into())
    );
    let malformed = server.client_with(&account.api_key).with_header("Max-Cost", "cheap");
    assert_eq!(malformed.get("/api/echo/a").expect(400).error(), "invalid_parameter");
    assert_eq!(balance(&server.client_with(&account.api_key)), "1");
}

#[test]
fn services_that_report_over_http_are_charged_by_tier() {
    let (site, upstream) = (Site::verified(), Upstream::start());
    let account = site.account("2");
    let server = serving(&site, &upstream);
    let resolver = server.client_with(&account.api_key).with_header("X-BDS-Internal-Billing-Secret", SECRET);
    let deduct = |fields: Value| {
        let mut body = json!({"path": "/api/echo/a", "method": "GET"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        resolver.post("/internal/billing/deduct", &body)
    };
    // A template or a method of the caller's own begins no other count.
    let own =
        [json!({}), json!({"route_template": "/made/up"}), json!({"method": "HEAD"}), json!({"path": "/api/echo/b/"})];
    for (fields, expected) in own.into_iter().zip(["0", "0", "0", "0.25"]) {
        let charged = deduct(fields.clone()).expect(200).json()["amount_charged"].to_string();
        assert_eq!(charged, expected, "{fields}");
    }
    // A weight of the caller's own replaces the catalogue's price, and is not counted.
    assert_eq!(deduct(json!({"credit_weight": 720})).expect(200).json()["amount_charged"].to_string(), "0.1");
    let refused = deduct(json!({"history_multiplier": 2})).expect(400);
    assert!(refused.text().contains("history_multiplier"), "{}", refused.text());
    // A hold takes its place, and gives it back when it is released.
    let held = resolver.post("/internal/billing/hold", &json!({"path": "/api/echo/a", "method": "GET"}));
    let held = held.expect(200).json();
    assert_eq!(held["request"]["held"].to_string(), "0.25", "{held}");
    assert_eq!(volumes(&resolver)[1].0, json!(5));
    let id = held["request"]["id"].as_str().unwrap();
    let _ = resolver.post("/internal/billing/release", &json!({"id": id})).expect(200);
    assert_eq!(volumes(&resolver)[1], (json!(4), json!(0), "0.25".to_owned()));
}
