//! Charges whose response could not be delivered are refunded in full.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use metering_tests::load::{Stop, request, run};
use metering_tests::ports::free_address;
use metering_tests::site::Site;
use serde_json::Value;

use crate::support::upstream::{Upstream, catalogue, served};
use crate::support::wait::until;
use crate::support::wire::{amount, balance, plan_with_long_timeout, usage_events};

#[test]
fn undelivered_request_is_refunded_before_its_error_response() {
    let (site, upstream) = (Site::verified(), Upstream::start());
    let account = site.account("1");
    let server = site
        .server()
        .set("METERING_GATEWAY__UPSTREAM_TIMEOUT", "2s")
        .args(["--upstream", &upstream.url()])
        .args(catalogue(&site))
        .start();
    let client = server.client_with(&account.api_key);
    let _ = client.get("/api/echo/word").expect(200);
    // path, status, error, `Retry-After`
    let table = [
        ("/api/status/502", 502, "upstream_unreachable", "7"),
        ("/api/status/503", 503, "upstream_unavailable", "7"),
        ("/api/status/504", 504, "upstream_timeout", "7"),
        ("/api/slow/5000", 504, "upstream_timeout", "5"),
    ];
    for (path, status, error, wait) in table {
        let response = client.get(path).expect(status);
        assert_eq!(response.error(), error, "{path}");
        assert_eq!(response.header("retry-after"), Some(wait), "{path}");
        assert_eq!(response.json()["retry_after_sec"].to_string(), wait, "{path}");
        assert_eq!(response.header("x-bds-credit-charged"), Some("0"), "{path}");
        assert_eq!(response.header("x-bds-credit-balance"), Some("0.9998611111"), "{path}");
        assert_eq!(balance(&client), "0.9998611111", "{path}");
    }
    let activity = client.get("/credits/usage").expect(200).json();
    let amounts = |kind: &str| -> Vec<String> {
        let of_kind = |entry: &&Value| entry["type"] == kind;
        let entries = activity["transactions"].as_array().unwrap().iter().filter(of_kind);
        entries.map(|entry| entry["amount"].to_string()).collect()
    };
    assert_eq!(amounts("usage_refund"), vec!["0.0001388889"; 4]);
    assert_eq!(amounts("usage"), vec!["-0.0001388889"; 5]);
}

#[test]
fn unreachable_upstream_costs_nothing() {
    let site = Site::verified();
    let account = site.account("1");
    // Bound and closed again, so nothing listens there.
    let closed = free_address();
    let server = site.server().args(["--upstream", &format!("http://{closed}")]).start();
    let warning = "the upstream cannot be reached";
    until("the start warns of it", || server.log().contains(warning));
    let client = server.client_with(&account.api_key);
    for _ in 0..3 {
        let response = client.get("/mpp/ethPrice").expect(502);
        assert_eq!(response.error(), "upstream_unreachable");
        assert_eq!(response.header("x-bds-credit-charged"), Some("0"));
        assert_eq!(response.header("x-bds-credit-balance"), Some("1"));
        assert!(response.header("retry-after").is_some());
    }
    let stream = client.get("/mpp/stream/allTrades").expect(502);
    assert_eq!(stream.header("x-bds-credit-charged"), Some("0"));
    assert_eq!(balance(&client), "1");
    // Streams that never opened do not count as open.
    for _ in 0..20 {
        assert_eq!(client.get("/mpp/stream/allTrades").status, 502);
    }
}

#[test]
fn concurrent_refunds_add_up() {
    let (_site, _upstream, account, server) = served("1");
    let calls = ["/api/status/503", "/api/echo/word"].map(|path| request("GET", path, Some(&account.api_key), &[]));
    let result = run(plan_with_long_timeout(server.address(), 32, Stop::AfterRequests(1_000), calls));
    assert_eq!((result.with_status(503), result.with_status(200), result.errors), (500, 500, 0), "{result:?}");
    let client = server.client_with(&account.api_key);
    assert_eq!(balance(&client), amount((7_200 - 500) * 1_000_000));
    let summary = client.get("/credits/usage/summary?days=2").expect(200).json();
    assert_eq!(summary["totals"]["credits_used"].to_string(), amount(500 * 1_000_000));
}

/// An upstream that sends each response exactly as given, over and over, and closes after each.
fn sending(responses: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (mut connection, response) in requests(&listener).zip(responses.iter().cycle()) {
            let _ = connection.write_all(response.as_bytes());
        }
    });
    format!("http://{address}")
}

/// Connections that sent a request. The server's check at startup only connects, so it is skipped.
fn requests(listener: &TcpListener) -> impl Iterator<Item = TcpStream> + '_ {
    listener.incoming().map(Result::unwrap).filter_map(|mut connection| {
        let read = connection.read(&mut [0; 4096]).unwrap_or(0);
        (read > 0).then_some(connection)
    })
}

#[test]
fn response_that_is_none_costs_nothing() {
    const RESPONSES: [&str; 11] = [
        // No HTTP at all.
        "",
        "220 smtp.example ready\r\n",
        "HTTP/1.1 two hundred\r\n\r\n",
        // An unrequested protocol switch or interim response.
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
        "HTTP/1.1 199 Unheard Of\r\n\r\n",
        // Broken before the first byte of its body.
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\n",
    ];
    let (_site, account, server) = Site::serving_with("1", |server| server.args(["--upstream", &sending(&RESPONSES)]));
    let client = server.client_with(&account.api_key);
    for response in RESPONSES {
        let refused = client.get("/mpp/ethPrice").expect(502);
        assert_eq!(refused.error(), "upstream_unreachable", "{response}");
        assert_eq!(refused.header("x-bds-credit-charged"), Some("0"), "{response}");
        assert_eq!(refused.header("x-bds-credit-balance"), Some("1"), "{response}");
    }
    assert_eq!(balance(&client), "1");
}

#[test]
fn interim_response_is_skipped() {
    let site = Site::new();
    let account = site.account("1");
    let upstream =
        sending(&["HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"]);
    let server = site.server().args(["--upstream", &upstream]).start();
    let response = server.client_with(&account.api_key).get("/mpp/ethPrice").expect(200);
    assert_eq!((response.text().as_str(), response.header("link")), ("ok", None));
}

#[test]
fn stream_that_gets_a_free_status_costs_nothing() {
    let site = Site::verified();
    let account = site.account("1");
    let upstream = sending(&[
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 9\r\nContent-Length: 4\r\n\r\nbusy",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone",
    ]);
    let server = site.server().args(["--upstream", &upstream]).start();
    let client = server.client_with(&account.api_key);
    for (status, text, wait, charged) in [(429, "busy", Some("9"), "0"), (404, "gone", None, "0.01")] {
        let response = client.get("/mpp/stream/allTrades").expect(status);
        assert_eq!((response.text().as_str(), response.header("retry-after")), (text, wait));
        assert_eq!(response.header("x-bds-credit-charged"), Some(charged), "{status}");
    }
    assert_eq!(balance(&client), "0.99");
}

#[test]
fn empty_response_counts_as_delivered() {
    let site = Site::new();
    let account = site.account("1");
    let upstream = sending(&[
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    ]);
    let server = site.server().args(["--upstream", &upstream]).start();
    let client = server.client_with(&account.api_key);
    for status in [200, 204, 200, 200] {
        let response = client.get("/mpp/ethPrice").expect(status);
        assert_eq!((response.body.len(), response.header("x-bds-credit-charged")), (0, Some("0.0006944444")));
    }
    assert_eq!(balance(&client), amount((7_200 - 20) * 1_000_000));
}

#[test]
fn stream_broken_before_its_first_event_is_refunded() {
    let site = Site::verified();
    let account = site.account("1");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (release, released) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        for mut connection in requests(&listener) {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            let _ = connection.write_all(head.as_bytes());
            let _ = released.recv();
        }
    });
    let server = site.server().args(["--upstream", &format!("http://{address}")]).start();
    let client = server.client_with(&account.api_key);
    // The upstream sends nothing more until the client has the head.
    let stream = client.open("/mpp/stream/allTrades");
    assert_eq!((stream.status, stream.header("x-bds-credit-charged")), (200, Some("0.01")));
    assert_eq!(balance(&client), "0.99");
    release.send(()).unwrap();
    assert!(stream.finish().is_err(), "a broken stream must not look complete");
    assert_eq!(balance(&client), "1");
}

#[test]
fn truncated_response_is_visibly_truncated() {
    let site = Site::verified();
    let account = site.account("1");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let heads = ["Content-Length: 100", "Transfer-Encoding: chunked"];
        for (connection, head) in listener.incoming().zip(heads.iter().cycle()) {
            let mut connection = connection.unwrap();
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n5\r\nhello\r\n").as_bytes());
        }
    });
    let server = site.server().args(["--upstream", &format!("http://{address}")]).start();
    let client = server.client_with(&account.api_key);
    for _ in 0..4 {
        let response = client.try_send("GET", "/mpp/ethPrice", None);
        assert!(response.is_err(), "a broken response must not look complete: {response:?}");
    }
    // Part of it was delivered, so it stays charged.
    assert_eq!(balance(&client), amount((7_200 - 4 * 5) * 1_000_000));
}

#[test]
fn last_credit_is_refunded_when_its_request_fails() {
    let (_site, _upstream, account, server) = served("0.00000001");
    let client = server.client_with(&account.api_key);
    for _ in 0..3 {
        let _ = client.get("/api/status/503").expect(503);
    }
    assert_eq!(balance(&client), "0.00000001");
    let _ = client.get("/api/echo/word").expect(200);
    let _ = client.get("/api/echo/word").expect(402);
    assert!(usage_events(&client) >= 1);
}
