//! `Idempotency-Key` on metered routes: a retry is not charged again, and a key buys one response, on every node.

use std::time::{Duration, Instant};

use metering_tests::client::Client;
use metering_tests::site::Site;

use crate::support::upstream::{Upstream, catalogue, served};
use crate::support::wait::until;
use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance, usage_events};

fn keyed(client: &Client, key: &str) -> Client {
    client.clone().with_header("Idempotency-Key", key)
}

#[test]
fn idempotency_key_is_valid_for_one_request_only() {
    let (site, account, server) = Site::serving("1");
    let client = server.client_with(&account.api_key);
    let first = keyed(&client, "\"order-1\"").get(BASE).expect(200);
    assert_eq!(first.header("x-bds-credit-charged"), Some("0.0001388889"));
    // The delivery is recorded shortly after the response.
    until("it is recorded", || keyed(&client, "order-1").get(BASE).error() == "idempotency_key_used");
    // key, path, status, code
    let table = [
        ("order-1", BASE, 409, "idempotency_key_used"),
        ("\"order-1\"", BASE, 409, "idempotency_key_used"),
        ("order-1", "/mpp/ethPrice", 422, "idempotency_key_reused"),
        ("two words", BASE, 400, "invalid_parameter"),
        ("", BASE, 400, "invalid_parameter"),
        (&*"x".repeat(129), BASE, 400, "invalid_parameter"),
    ];
    for (key, path, status, code) in table {
        let refused = keyed(&client, key).get(path).expect(status);
        assert_eq!((refused.error().as_str(), refused.header("x-bds-credit-charged")), (code, None), "{key}");
    }
    let twice = keyed(&keyed(&client, "a"), "b").get(BASE).expect(400);
    assert!(twice.json()["fields"]["Idempotency-Key"].is_string(), "{:?}", twice.json());
    // Without a live API key, a client gets no information about idempotency keys.
    assert_eq!(keyed(&server.client(), "two words").get(BASE).status, 401);
    assert_eq!(balance(&client), amount(CREDIT - BASE_CALL));
    // Idempotency keys are per account.
    let other = site.account("1");
    let _ = keyed(&server.client_with(&other.api_key), "order-1").get(BASE).expect(200);
}

#[test]
fn concurrent_retries_on_two_servers_are_charged_once() {
    let site = Site::verified();
    let account = site.account("1");
    let servers = [site.server().start(), site.server().start()];
    for round in 0..8_i64 {
        let pending: Vec<_> = (0..16)
            .map(|n| {
                let client = keyed(&servers[n % 2].client_with(&account.api_key), &format!("round-{round}"));
                std::thread::spawn(move || client.get(BASE))
            })
            .collect();
        let responses: Vec<_> = pending.into_iter().map(|pending| pending.join().unwrap()).collect();
        assert_eq!(responses.iter().filter(|response| response.status == 200).count(), 1);
        for response in responses.iter().filter(|response| response.status != 200) {
            let code = response.error();
            assert!(matches!(code.as_str(), "request_in_progress" | "idempotency_key_used"), "{code}");
            assert_eq!(response.status, 409);
            assert_eq!(code == "request_in_progress", response.header("retry-after").is_some());
        }
        assert_eq!(balance(&servers[0].client_with(&account.api_key)), amount(CREDIT - (round + 1) * BASE_CALL));
    }
}

#[test]
fn refunded_request_is_charged_when_retried() {
    let (_site, _upstream, account, server) = served("1");
    let client = server.client_with(&account.api_key);
    for _ in 0..3 {
        let refunded = keyed(&client, "failing").get("/api/status/503").expect(503);
        assert_eq!(refunded.error(), "upstream_unavailable");
        assert_eq!(refunded.header("x-bds-credit-charged"), Some("0"));
    }
    // The key can be used again, even for another request.
    let _ = keyed(&client, "failing").get("/api/echo/word").expect(200);
    assert_eq!(balance(&client), amount(CREDIT - BASE_CALL));
}

#[test]
fn retry_after_a_disconnect_is_served_uncharged() {
    let (site, upstream) = (Site::verified(), Upstream::start());
    let account = site.account("1");
    let setup = site.server().set("METERING_GATEWAY__UPSTREAM_TIMEOUT", "4s");
    let server = setup.args(["--upstream", &upstream.url()]).args(catalogue(&site)).start();
    let client = server.client_with(&account.api_key);
    {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
        let head = format!(
            "GET /api/slow/3000 HTTP/1.1\r\nHost: x\r\nIdempotency-Key: gone\r\nAuthorization: Bearer {}\r\n\r\n",
            account.api_key
        );
        stream.write_all(head.as_bytes()).unwrap();
        let started = Instant::now();
        while usage_events(&client) == 0 {
            assert!(started.elapsed() < Duration::from_secs(60));
        }
        // Closes before the upstream responds.
    }
    let charged = balance(&client);
    // Even after a kill, the next server recognizes the key.
    server.kill();
    let setup = site.server().set("METERING_GATEWAY__UPSTREAM_TIMEOUT", "4s");
    let server = setup.args(["--upstream", &upstream.url()]).args(catalogue(&site)).start();
    let client = server.client_with(&account.api_key);
    let started = Instant::now();
    let served = loop {
        let response = keyed(&client, "gone").get("/api/slow/3000");
        if response.status == 200 {
            break response;
        }
        assert_eq!((response.status, response.error().as_str()), (409, "request_in_progress"));
        let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=18).contains(&wait) && started.elapsed() < Duration::from_secs(90), "{wait}");
        std::thread::sleep(Duration::from_secs(wait));
    };
    assert_eq!(served.header("x-bds-credit-balance"), Some(&*charged));
    assert_eq!((balance(&client), usage_events(&client)), (charged, 1));
    until("it is recorded", || keyed(&client, "gone").get("/api/slow/3000").error() == "idempotency_key_used");
}
