//! A proxy's reports after the response: responses that were not delivered cost nothing.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use metering_tests::client::Client;
use metering_tests::proxies::Kind;
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::json;

use super::proxy::{is_skipped, start};
use crate::support::upstream::{Upstream, catalogue};
use crate::support::wait::until;
use crate::support::wire::{BASE_CALL, CREDIT, amount, balance};

/// The internal billing secret.
pub(super) const SECRET: &str = "correct horse battery";

fn server(site: &Site, settle_within: &str) -> Server {
    let setup = site.server().args(catalogue(site)).args(["--surfaces", "metering,authorize"]);
    let setup = setup.set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1").set("METERING_AUTHORIZE__SETTLE", "true");
    let setup = setup.set("METERING_AUTHORIZE__SETTLE_WITHIN", settle_within);
    setup.set("METERING_BILLING__INTERNAL_SECRET", SECRET).start()
}

/// Asks about a request, and returns its id.
#[track_caller]
fn ask(client: &Client) -> String {
    let yes = client.get("/authorize/api/echo/word").expect(200);
    assert_eq!(yes.header("x-bds-credit-held"), Some(&*amount(BASE_CALL)));
    yes.header("x-bds-request-id").unwrap().to_owned()
}

fn settle(server: &Server, id: &str, status: u16) -> Response {
    let client = server.client().with_header("X-BDS-Internal-Billing-Secret", SECRET);
    client.post("/internal/billing/settle", &json!({"request_id": id, "status": status}))
}

#[test]
fn a_request_is_settled_once_on_any_node() {
    let site = Site::verified();
    let account = site.account("1");
    let (first, second) = (server(&site, "5m"), server(&site, "5m"));
    let client = first.client_with(&account.api_key);
    // status, whether it is charged
    let table = [(200, true), (404, true), (429, false), (500, false), (502, false), (503, false), (504, false)];
    let mut left = CREDIT;
    for (status, is_charged) in table {
        let id = ask(&client);
        assert_eq!(balance(&client), amount(left - BASE_CALL), "held");
        let settled = settle(&second, &id, status).expect(200).json();
        assert_eq!(settled["changed"], true);
        left -= if is_charged { BASE_CALL } else { 0 };
        // A later report changes nothing, from any node.
        for (server, other) in [(&first, 502), (&second, 200)] {
            assert_eq!(settle(server, &id, other).expect(200).json()["changed"], false);
        }
        assert_eq!(balance(&client), amount(left), "{status}");
    }
    let id = ask(&client);
    assert_eq!(settle(&first, &id, 99).expect(400).error(), "validation_failed");
    assert_eq!(settle(&first, "req_00000000000000000000000000000000", 200).expect(404).error(), "not_found");
    let body = json!({"request_id": id, "status": 502});
    assert_eq!(first.client().post("/internal/billing/settle", &body).expect(403).error(), "forbidden");
    let _ = settle(&first, &id, 502).expect(200);
    assert_eq!(balance(&client), amount(left));
}

#[test]
fn a_request_that_nobody_settles_is_charged() {
    let site = Site::verified();
    let account = site.account("1");
    let server = server(&site, "10s");
    let client = server.client_with(&account.api_key);
    let id = ask(&client);
    let state = || client.get(&format!("/requests/{id}")).expect(200).json()["state"].clone();
    until("it is settled", || state() != "held");
    assert_eq!(state(), "captured");
    assert_eq!(settle(&server, &id, 502).expect(200).json()["changed"], false);
    assert_eq!(balance(&client), amount(CREDIT - BASE_CALL));
}

#[test]
fn a_catalogue_with_prices_by_usage_needs_it() {
    let site = Site::new();
    let route = json!({"path": "/api/chat", "method": "POST", "metered": true,
        "price": {"max": "0.5", "report": {"header": "x-cost"}}});
    let file = site.write("usage.json", &json!({"market": "M", "version": 1, "endpoints": [route]}).to_string());
    let setup = site.server().args(["--surfaces", "metering,authorize", "--catalogue"]).args([file]);
    let refused = setup.set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1").run();
    assert!(refused.stderr.contains("authorize.settle = true"), "{refused:?}");
}

#[test]
fn nginx_settles_after_each_response() {
    metering_tests::skip_if!(is_skipped());
    let (site, upstream) = (Site::verified(), Upstream::start());
    let account = site.account("1");
    let server = server(&site, "5m");
    let service: SocketAddr = upstream.url().trim_start_matches("http://").parse().unwrap();
    let proxy = start(Kind::Nginx, "nginx-settle.conf", server.address(), service);
    let client = Client::new(proxy.address()).with_key(&account.api_key);
    let direct = server.client_with(&account.api_key);
    let _ = client.get("/api/echo/word").expect(200);
    for status in [502, 503, 504, 500, 404] {
        let _ = client.get(&format!("/api/status/{status}")).expect(status);
    }
    // The last word comes after the response.
    let started = Instant::now();
    while direct.get("/requests").expect(200).json()["data"] != json!([]) {
        assert!(started.elapsed() < Duration::from_secs(60), "not settled: {}", proxy.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(balance(&direct), amount(CREDIT - 2 * BASE_CALL), "only 404 and 200 cost something");
}
