//! Charging over HTTP, for services that serve the requests themselves.

use metering_tests::client::Client;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::support::calendar::{in_one_minute, minute_with};
use crate::support::wire::{amount, balance, usage_events};

const SECRET: &str = "correct horse battery staple";
const SECRET_HEADER: &str = "X-BDS-Internal-Billing-Secret";
const DEDUCT: &str = "/internal/billing/deduct";
const LOOKUP: &str = "/internal/billing/lookup";

fn serving(site: &Site) -> Server {
    site.server().set("METERING_BILLING__INTERNAL_SECRET", SECRET).start()
}

fn resolver(server: &Server, api_key: &str) -> Client {
    server.client_with(api_key).with_header(SECRET_HEADER, SECRET)
}

#[test]
fn billing_api_is_off_without_a_secret() {
    let (_site, account, server) = Site::serving("1");
    for client in [server.client(), server.client_with(&account.api_key), resolver(&server, &account.api_key)] {
        for endpoint in ["deduct", "lookup", "hold", "capture", "release"] {
            let path = format!("/internal/billing/{endpoint}");
            let response = client.post(&path, &json!({"path": "/a", "method": "GET", "credit_weight": 1})).expect(404);
            assert_eq!(response.error(), "not_found");
        }
    }
    assert_eq!(balance(&server.client_with(&account.api_key)), "1");
}

#[test]
fn wrong_secret_is_forbidden() {
    let site = Site::new();
    let account = site.account("1");
    let server = serving(&site);
    let wrong = ["", "correct", "correct horse battery stapl", "correct horse battery staple2", "\u{e9}"];
    let mut clients = vec![server.client(), server.client_with(&account.api_key)];
    clients.extend(wrong.map(|secret| server.client_with(&account.api_key).with_header(SECRET_HEADER, secret)));
    for client in clients {
        for path in [DEDUCT, LOOKUP] {
            let response = client.post(path, &json!({"path": "/a", "method": "GET", "credit_weight": 1})).expect(403);
            assert_eq!(response.error(), "forbidden");
        }
    }
    assert_eq!(balance(&server.client_with(&account.api_key)), "1");
}

#[test]
fn price_is_the_callers_or_the_catalogues() {
    let site = Site::verified();
    let account = site.account("100");
    let server = serving(&site);
    let client = resolver(&server, &account.api_key);
    let series = "/mpp/timeSeries/{token_address}/{pool_address}/{time_interval}/{step_seconds}";
    // request, price in atoms
    let table = [
        (json!({"path": "/own/route", "method": "GET", "credit_weight": 1}), 1_000_000),
        (json!({"path": "/own/route", "method": "post", "credit_weight": 2.5}), 2_500_000),
        (json!({"path": "/own/route", "method": "GET", "credit_weight": 0.000001}), 1),
        (json!({"path": "/own/route", "method": "GET", "credit_weight": 1.5, "history_multiplier": 0.5}), 750_000),
        // Cut to the caps, as resolvers expect.
        (json!({"path": "/own/route", "method": "GET", "credit_weight": 3, "history_multiplier": 1024}), 300_000_000),
        (json!({"path": "/own/route", "method": "GET", "credit_weight": 1000.5}), 1_000_000_000),
        // Unusable values count as 1, and numbers may be text with any number of digits.
        (json!({"path": "/own/route", "method": "GET", "credit_weight": 0}), 1_000_000),
        (json!({"path": "/own/route", "credit_weight": -1, "history_multiplier": "much"}), 1_000_000),
        (json!({"path": "/own/route", "credit_weight": "2.00000049", "history_multiplier": [1]}), 2_000_000),
        (json!({"credit_weight": 2.0000005}), 2_000_000),
        (json!({"path": null, "method": null, "credit_weight": 0.0000001}), 1),
        (json!({}), 1_000_000),
        (json!({"path": "/own/route", "method": "GET", "credit_weight": 1000}), 1_000_000_000),
        (json!({"path": "/mpp/ethPrice", "method": "GET"}), 5_000_000),
        (json!({"path": "/mpp/ethPrice?x=1", "method": "GET"}), 5_000_000),
        (json!({"path": "/mpp/ethPrice", "method": "GET", "history_multiplier": 2}), 10_000_000),
        (json!({"path": "/mpp/ethPrice", "method": "GET", "credit_weight": 7}), 7_000_000),
        (json!({"path": "/elsewhere", "method": "GET", "route_template": "/mpp/ethPrice"}), 5_000_000),
        (json!({"path": "/mpp/timeSeries/a/b/601/60", "method": "GET"}), 10_000_000),
        (json!({"path": "/x", "method": "GET", "route_template": series, "lookback_seconds": 3601}), 40_000_000),
        (json!({"path": "/x", "method": "GET", "route_template": series, "history_multiplier": 3}), 15_000_000),
        (json!({"path": "/mpp/stream/allTrades", "method": "GET"}), 72_000_000),
        // A stream costs one session, with any weight that the caller sends, and on any path below the streams.
        (json!({"path": "/mpp/stream/allTrades", "method": "GET", "credit_weight": 1.0}), 72_000_000),
        (json!({"path": "/mpp/stream/other/0xabc", "method": "GET", "credit_weight": 1.0}), 72_000_000),
        (json!({"path": "/mpp/stream/allTrades/", "method": "GET", "history_multiplier": 3}), 72_000_000),
        (
            json!({"path": "/x", "method": "GET", "route_template": "/mpp/stream/{kind}", "credit_weight": 1}),
            72_000_000,
        ),
        // Paths as resolvers see them.
        (json!({"path": "/mpp/ethPrice", "method": "HEAD"}), 5_000_000),
        (json!({"path": "/mpp/ethPrice/", "method": "GET"}), 5_000_000),
        (json!({"path": "//mpp/ethPrice", "method": "GET"}), 5_000_000),
        (json!({"path": "/mpp/ethprice", "method": "GET"}), 5_000_000),
        (json!({"path": "/mpp/ethPrice", "method": "POST"}), 5_000_000),
        (json!({"path": "/mpp/pool/a b é/metadata", "method": "GET"}), 1_000_000),
        (json!({"path": "/mpp/timeSeries/a/b/601/60/", "method": "GET"}), 10_000_000),
        (json!({"path": "/mpp/timeSeries/a/b/soon/60", "method": "GET"}), 5_000_000),
        (json!({"path": "/mpp/ethPrice/19000000", "method": "GET", "route_template": "/mpp/ethPrice/{n}"}), 10_000_000),
        (json!({"path": "/unheard of/é", "method": "GET"}), 1_000_000),
        (json!({"path": "own", "method": "PROPFIND"}), 1_000_000),
        (json!({"path": "", "method": "M-SEARCH", "history_multiplier": 2}), 2_000_000),
        (json!({"path": "/a/../b;c\r\n", "method": "GET", "route_template": "no slash"}), 1_000_000),
        (
            json!({"path": "/own", "method": "GET", "credit_weight": 1, "unknown": [1], "client_source": "mcp"}),
            1_000_000,
        ),
    ];
    let mut left = 720_000_000_000;
    for (request, price) in &table {
        let response = client.post(DEDUCT, request).expect(200);
        left -= price;
        let expected = format!(
            "{{\"ok\":true,\"credit_balance\":{},\"amount_charged\":{},\"org_id\":\"{}\"}}",
            amount(left),
            amount(*price),
            account.org_id
        );
        assert_eq!(response.text(), expected, "{request}");
        assert_eq!(response.header("x-bds-credit-charged"), Some(amount(*price).as_str()), "{request}");
    }
    assert_eq!(balance(&client), amount(left));
    assert_eq!(usage_events(&client), u64::try_from(table.len()).unwrap());
    server.expect_log("it counts as 1");
}

#[test]
fn request_that_cannot_be_read_is_refused_uncharged() {
    let site = Site::verified();
    let account = site.account("1");
    let server = serving(&site);
    let client = resolver(&server, &account.api_key);
    let long = "x".repeat(2_000);
    // body, name in the error
    let table = [
        (json!({"path": 5, "method": "GET", "credit_weight": 1}), "path"),
        (json!({"path": "/a", "method": "G T", "credit_weight": 1}), "method"),
        (json!({"path": "/a", "method": long, "credit_weight": 1}), "method"),
        (json!({"path": "/a", "method": "GET", "credit_weight": 1, "lookback_seconds": -1}), "lookback_seconds"),
        (json!({"path": "/a", "method": "GET", "credit_weight": 1, "lookback_seconds": 1.5}), "lookback_seconds"),
        (json!({"path": "/a", "method": "GET", "credit_weight": 1, "request_id": ""}), "request_id"),
        (json!({"path": "/a", "method": "GET", "credit_weight": 1, "request_id": "a b"}), "request_id"),
        (json!({"path": "/a", "method": "GET", "credit_weight": 1, "request_id": long}), "request_id"),
        (json!({"path": "/a", "method": "GET", "credit_weight": 1, "client_source": 5}), "client_source"),
        (json!([1]), "body"),
        (json!(["/a", "GET", null, 1, null, null, null, null]), "body"),
        (json!("text"), "body"),
        (json!(null), "body"),
    ];
    for (body, named) in table {
        let response = client.post(DEDUCT, &body).expect(400);
        assert_eq!(response.error(), "validation_failed", "{body}");
        let fields = &response.json()["fields"];
        // A missing field is named in the error for the body.
        assert!(fields[named].is_string() || fields.to_string().contains(named), "{body}: {fields}");
    }
    let not_json: [&[u8]; 8] = [
        b"{",
        b"nonsense",
        b"{\"path\": \"/a\", \"method\": \"GET\", \"credit_weight\": 1} more",
        b"{\"path\": \"/a\xff\", \"method\": \"GET\", \"credit_weight\": 1}",
        b"{\"path\": \"/a\", \"method\": \"GET\", \"credit_weight\": 01}",
        b"{\"path\": \"/a\", \"method\": \"GET\", \"credit_weight\": NaN}",
        b"{'path': '/a'}",
        b"\xef\xbb\xbf{}",
    ];
    for body in not_json {
        let response = client.send("POST", DEDUCT, Some(body)).expect(400);
        assert_eq!(response.error(), "invalid_json", "{}", String::from_utf8_lossy(body));
    }
    let invalid: [&[u8]; 2] = [
        b"{\"path\": \"/a\", \"method\": \"GET\", \"credit_weight\": 1, \"lookback_seconds\": 18446744073709551616}",
        b"{\"path\": \"/a\", \"path\": \"/b\", \"method\": \"GET\", \"credit_weight\": 1}",
    ];
    for body in invalid {
        let response = client.send("POST", DEDUCT, Some(body)).expect(400);
        assert_eq!(response.error(), "validation_failed", "{}", String::from_utf8_lossy(body));
    }
    let nested = format!("{{\"path\": {}1", "[".repeat(20_000));
    let _ = client.send("POST", DEDUCT, Some(nested.as_bytes())).expect(400);
    assert_eq!(balance(&client), "1");
}

#[test]
fn default_weight_is_configurable() {
    let site = Site::new();
    let account = site.account("1");
    let server = site
        .server()
        .set("METERING_BILLING__INTERNAL_SECRET", SECRET)
        .set("METERING_BILLING__DEFAULT_WEIGHT", "2.5")
        .start();
    let client = resolver(&server, &account.api_key);
    let charged =
        |request: Value| client.post(DEDUCT, &request).expect(200).header("x-bds-credit-charged").map(str::to_owned);
    assert_eq!(charged(json!({"path": "/unheard/of", "method": "GET"})), Some(amount(2_500_000)));
    assert_eq!(charged(json!({"path": "/mpp/ethPrice", "method": "GET"})), Some(amount(5_000_000)));
    assert_eq!(client.send("POST", DEDUCT, None).expect(200).member("amount_charged"), amount(2_500_000));
    drop(server);
    let refused = site.server().set("METERING_BILLING__DEFAULT_WEIGHT", "0").run();
    assert!(refused.stderr.contains("billing.default_weight"), "{refused:?}");
}

#[test]
fn unknown_paths_cannot_grow_the_usage_tables() {
    let site = Site::verified();
    let (account, other) = (site.account("10"), site.account("10"));
    let server = || {
        let server = site.server().set("METERING_BILLING__INTERNAL_SECRET", SECRET);
        server.set("METERING_BILLING__TEMPLATES_PER_ACCOUNT", "3").start()
    };
    let templates = |client: &Client| -> Vec<(String, u64)> {
        let usage = client.get("/credits/usage/by-endpoint?days=2&limit=100").expect(200).json();
        let endpoints = usage["endpoints"].as_array().or(usage["by_endpoint"].as_array()).unwrap().iter();
        let mut used: Vec<_> = endpoints
            .map(|used| (used["route_template"].as_str().unwrap().to_owned(), used["call_count"].as_u64().unwrap()))
            .collect();
        used.sort_unstable();
        used
    };
    let running = server();
    let client = resolver(&running, &account.api_key);
    let long = format!("/{}", "x".repeat(2_000));
    let charge = |client: &Client, request: Value| drop(client.post(DEDUCT, &request).expect(200));
    charge(&client, json!({"path": "/x", "method": "GET", "route_template": long}));
    charge(&client, json!({"path": "/x", "method": "GET", "route_template": "/a\u{202e}b"}));
    for number in 0..10 {
        charge(&client, json!({"path": format!("/chosen/{number}"), "method": "GET"}));
        charge(&client, json!({"path": "/mpp/ethPrice", "method": "GET"}));
    }
    let expected = |other: u64, first: u64| {
        [("(other)", other), ("/chosen/0", first), ("/chosen/1", 1), ("/chosen/2", 1), ("/mpp/ethPrice", 10)]
            .map(|(template, calls)| (template.to_owned(), calls))
    };
    assert_eq!(templates(&client), expected(9, 1));
    // Clients choose methods too.
    charge(&client, json!({"path": "/chosen/0", "method": "X-ANY"}));
    // The bound is per account, and holds across restarts.
    drop(running);
    let running = server();
    let client = resolver(&running, &account.api_key);
    charge(&client, json!({"path": "/chosen/11", "method": "GET"}));
    charge(&client, json!({"path": "/chosen/0", "method": "GET"}));
    let used = templates(&client);
    let calls: u64 = used.iter().filter(|(template, _)| template == "(other)").map(|(_, calls)| calls).sum();
    assert_eq!(calls, 11, "{used:?}");
    assert!(used.iter().any(|used| *used == ("/chosen/0".to_owned(), 2)), "{used:?}");
    let other = resolver(&running, &other.api_key);
    charge(&other, json!({"path": "/chosen/11", "method": "GET"}));
    assert_eq!(templates(&other), [("/chosen/11".to_owned(), 1)]);
}

#[test]
fn repeated_idempotency_key_is_charged_once() {
    let site = Site::verified();
    let (account, other) = (site.account("1"), site.account("1"));
    let server = serving(&site);
    let client = resolver(&server, &account.api_key);
    let request =
        |weight: u32| json!({"path": "/a", "method": "GET", "credit_weight": weight, "request_id": "order-1"});
    let first = client.post(DEDUCT, &request(1)).expect(200);
    let _ = client.post(DEDUCT, &json!({"path": "/a", "method": "GET", "credit_weight": 1})).expect(200);
    // A retry gets the first response, even if its weight differs.
    for weight in [1, 2] {
        assert_eq!(client.post(DEDUCT, &request(weight)).expect(200).text(), first.text());
    }
    assert_eq!(balance(&client), amount(7_200_000_000 - 2_000_000));
    // Request ids are per account.
    let _ = resolver(&server, &other.api_key).post(DEDUCT, &request(1)).expect(200);
    assert_eq!(balance(&resolver(&server, &other.api_key)), amount(7_200_000_000 - 1_000_000));
    server.kill();
    let server = serving(&site);
    let again = resolver(&server, &account.api_key).post(DEDUCT, &request(1)).expect(200);
    assert_eq!(again.text(), first.text());
}

#[test]
fn refusals_match_the_gateways() {
    in_one_minute(|| {
        let site = Site::new();
        let (poor, capped) = (site.account("0"), site.account_with_caps("1", 1, 0));
        let server = serving(&site);
        let request = json!({"path": "/a", "method": "GET", "credit_weight": 3});
        let refused = resolver(&server, &poor.api_key).post(DEDUCT, &request).expect(402);
        assert_eq!(refused.json()["required"].to_string(), "0.0004166667");
        assert!(refused.json()["plans"].is_array());
        minute_with(std::time::Duration::from_secs(5));
        let client = resolver(&server, &capped.api_key);
        let _ = client.post(DEDUCT, &request).expect(200);
        let refused = client.post(DEDUCT, &request).expect(429);
        assert_eq!(refused.json()["limit_window"], "minute");
        // Both endpoints share one cap.
        let _ = client.get("/mpp/ethPrice").expect(429);
    });
}

#[test]
fn lookup_returns_the_keys_account_and_charges_nothing() {
    let site = Site::new();
    let account = site.account("0.5");
    let server = serving(&site);
    let response = resolver(&server, &account.api_key).post(LOOKUP, &Value::Null).expect(200);
    assert_eq!(response.text(), format!("{{\"org_id\":\"{}\",\"email\":null,\"credit_balance\":0.5}}", account.org_id));
    let _ = resolver(&server, &account.api_key).send("POST", LOOKUP, None).expect(200);
    let poor = site.account("0");
    let _ = resolver(&server, &poor.api_key).post(LOOKUP, &Value::Null).expect(200);
    assert_eq!(balance(&server.client_with(&account.api_key)), "0.5");
}
