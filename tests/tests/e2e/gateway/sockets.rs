//! WebSocket connections: charged once, limited per key, and ended with the key, the balance or the server.

use std::time::{Duration, Instant};

use metering_tests::client::exchange;
use metering_tests::response::Response;
use metering_tests::server::{Server, ServerSetup};
use metering_tests::site::Site;

use crate::support::sockets::{
    FLOOD, SocketUpstream, catalogue, expect_close, expect_echo, open, open_with_head, open_with_key,
};
use crate::support::wait::until;
use crate::support::wire::{balance, usage_events};

fn setup(site: &Site, upstream: &SocketUpstream) -> ServerSetup {
    site.server().args(["--upstream", &upstream.url()]).args(catalogue(site))
}

/// Waits until the server's metrics have this line.
#[track_caller]
fn wait_for_metric(server: &Server, line: &str) {
    until(&format!("the metric {line}"), || {
        server.client().get("/metrics").expect(200).text().lines().any(|found| found == line)
    });
}

#[test]
fn connection_of_any_length_is_charged_once() {
    let (site, upstream) = (Site::verified(), SocketUpstream::start());
    let account = site.account("1");
    let server = setup(&site, &upstream).start();
    let client = server.client_with(&account.api_key);
    let bearer = format!("Bearer {}", account.api_key);
    let (mut socket, head) = open_with_head(server.address(), "/live", &[("authorization", &bearer)]).unwrap();
    assert_eq!(head["x-bds-credit-charged"], "0.01");
    assert_eq!(head["x-bds-credit-balance"], "0.99");
    for number in 0..20 {
        expect_echo(&mut socket, &format!("message {number}"));
    }
    wait_for_metric(&server, "metering_streams_open 1");
    assert_eq!((balance(&client), usage_events(&client)), ("0.99".to_owned(), 1));
    let summary = client.get("/credits/usage/summary").expect(200).text();
    assert!(summary.contains("\"/live\""), "{summary}");
    // The whole message arrives, no matter which side is slower, and the gateway forwards the Close frame of either
    // side.
    let large = "x".repeat(8 << 20);
    expect_echo(&mut socket, &large);
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    upstream.wait_for_open(0);
    wait_for_metric(&server, "metering_streams_open 0");
    let handshake = &upstream.handshakes()[0];
    assert_eq!(handshake["upgrade"], "websocket");
    assert_eq!(handshake["x-metering-org-id"], account.org_id.as_str());
    assert!(!handshake.contains_key("authorization"));
}

#[test]
fn a_browsers_key_comes_among_the_subprotocols_and_stays_in_the_gateway() {
    let (site, upstream) = (Site::new(), SocketUpstream::start());
    let account = site.account("1");
    let server = setup(&site, &upstream).set("METERING_LOG__FILTER", "debug").start();
    let protocols = format!("realtime, openai-insecure-api-key.{}, openai-beta.realtime-v1", account.api_key);
    let (mut socket, head) =
        open_with_head(server.address(), "/live", &[("sec-websocket-protocol", &protocols)]).unwrap();
    assert_eq!(head["sec-websocket-protocol"], "realtime");
    expect_echo(&mut socket, "hello");
    assert_eq!(upstream.handshakes()[0]["sec-websocket-protocol"], "realtime, openai-beta.realtime-v1");
    assert_eq!(balance(&server.client_with(&account.api_key)), "0.99");
    assert!(!server.log().contains(&account.api_key), "the key is in the log");
}

#[test]
fn requests_that_cannot_open_a_connection_are_refused_uncharged() {
    let (site, upstream) = (Site::new(), SocketUpstream::start());
    let account = site.account("1");
    let server = setup(&site, &upstream).start();
    let client = server.client_with(&account.api_key);
    let bearer = format!("Bearer {}", account.api_key);
    assert_eq!(open(server.address(), "/live", &[]).err(), Some(401));
    assert_eq!(open(server.address(), "/plain", &[("authorization", &bearer)]).err(), Some(400));
    let plain = client.get("/live").expect(426);
    assert_eq!((plain.error().as_str(), plain.header("upgrade")), ("upgrade_required", Some("websocket")));
    // A handshake as it arrives behind a proxy that drops hop-by-hop headers.
    let request = |path: &str, lines: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: {bearer}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{lines}\r\n"
        )
    };
    let refused = |path: &str, lines: &str| {
        Response::parse(&exchange(server.address(), request(path, lines).as_bytes()).unwrap()).unwrap()
    };
    assert_eq!(refused("/live", "Connection: close\r\n").expect(426).error(), "upgrade_required");
    assert_eq!(refused("/plain", "Connection: close\r\n").expect(400).error(), "websocket_not_supported");
    assert!(upstream.handshakes().is_empty());
    assert_eq!((balance(&client), usage_events(&client)), ("1".to_owned(), 0));
    // Another protocol is ignored, as HTTP allows.
    let other = client.clone().with_header("Upgrade", "h2c").get("/plain");
    assert_eq!(other.expect(200).text(), "ok");
}

#[test]
fn an_upstream_that_does_not_switch_is_passed_on_or_refunded() {
    let (site, upstream) = (Site::verified(), SocketUpstream::start());
    let account = site.account("1");
    let bearer = format!("Bearer {}", account.api_key);
    let server = setup(&site, &upstream).start();
    let client = server.client_with(&account.api_key);
    assert_eq!(open(server.address(), "/live/refused", &[("authorization", &bearer)]).err(), Some(403));
    assert_eq!(balance(&client), "0.99");
    wait_for_metric(&server, "metering_streams_open 0");
    drop(server);
    let server = site.server().args(["--upstream", "http://127.0.0.1:9"]).args(catalogue(&site)).start();
    assert_eq!(open(server.address(), "/live", &[("authorization", &bearer)]).err(), Some(502));
    assert_eq!(balance(&server.client_with(&account.api_key)), "0.99");
}

#[test]
fn connections_are_limited_per_key_and_slots_are_freed() {
    let (site, upstream) = (Site::verified(), SocketUpstream::start());
    let account = site.account("1");
    let server = setup(&site, &upstream).set("METERING_GATEWAY__MAX_STREAMS_PER_KEY", "2").start();
    let bearer = format!("Bearer {}", account.api_key);
    let first = open_with_key(server.address(), "/live", &account.api_key);
    let mut second = open_with_key(server.address(), "/live", &account.api_key);
    assert_eq!(open(server.address(), "/live", &[("authorization", &bearer)]).err(), Some(429));
    assert_eq!(balance(&server.client_with(&account.api_key)), "0.98");
    // A client that is gone, without a Close frame.
    drop(first);
    upstream.wait_for_open(1);
    wait_for_metric(&server, "metering_streams_open 1");
    expect_echo(&mut open_with_key(server.address(), "/live", &account.api_key), "third");
    expect_echo(&mut second, "second");
}

#[test]
fn connections_of_a_revoked_key_are_closed() {
    let (site, upstream) = (Site::new(), SocketUpstream::start());
    let (account, other) = (site.account("1"), site.account("1"));
    let server = setup(&site, &upstream).start();
    let mut socket = open_with_key(server.address(), "/live", &account.api_key);
    let mut others = open_with_key(server.address(), "/live", &other.api_key);
    expect_echo(&mut socket, "before");
    let _ = site.admin_json(&["account", "revoke", &account.org_id, "--yes"]);
    let revoked = Instant::now();
    assert_eq!(expect_close(&mut socket), (1008, "the API key no longer works".to_owned()));
    assert!(revoked.elapsed() < Duration::from_secs(50), "{:?}", revoked.elapsed());
    upstream.wait_for_open(1);
    expect_echo(&mut others, "after");
}

#[test]
fn connection_ends_when_the_balance_is_used_up_by_other_requests() {
    let (site, upstream) = (Site::verified(), SocketUpstream::start());
    let (account, last) = (site.account("0.02"), site.account("0.01"));
    let server = setup(&site, &upstream).set("METERING_GATEWAY__STREAM_CHECK", "100ms").start();
    let mut paid_with_the_last = open_with_key(server.address(), "/live", &last.api_key);
    let mut socket = open_with_key(server.address(), "/live", &account.api_key);
    expect_echo(&mut socket, "before");
    let _ = server.client_with(&account.api_key).get("/plain").expect(200);
    assert_eq!(expect_close(&mut socket), (1008, "the balance is used up".to_owned()));
    expect_echo(&mut paid_with_the_last, "still open");
    upstream.wait_for_open(1);
}

#[test]
fn shutdown_closes_connections_and_does_not_wait_for_their_clients() {
    let (site, upstream) = (Site::verified(), SocketUpstream::start());
    let account = site.account("1");
    let mut server = setup(&site, &upstream).start();
    let mut socket = open_with_key(server.address(), "/live", &account.api_key);
    let mut free = open(server.address(), "/live/free", &[]).unwrap();
    let _silent = open_with_key(server.address(), "/live", &account.api_key);
    expect_echo(&mut socket, "before");
    server.terminate();
    let terminated = Instant::now();
    for socket in [&mut socket, &mut free] {
        assert_eq!(expect_close(socket), (1001, "the server is shutting down".to_owned()));
    }
    assert!(server.wait().success());
    assert!(terminated.elapsed() < Duration::from_secs(18), "{:?}", terminated.elapsed());
    upstream.wait_for_open(0);
}

#[test]
fn slow_reader_slows_the_upstream_down_and_gets_everything() {
    let (site, upstream) = (Site::verified(), SocketUpstream::start());
    let account = site.account("1");
    let server = setup(&site, &upstream).start();
    let mut socket = open_with_key(server.address(), "/live/flood", &account.api_key);
    std::thread::sleep(Duration::from_secs(1));
    let (count, bytes) = FLOOD;
    let sent = upstream.flooded();
    assert!((1..count).contains(&sent), "{sent} messages fit into buffers");
    for number in 0..count {
        assert_eq!(socket.read().unwrap().len(), bytes, "{number}");
    }
    expect_echo(&mut socket, "at last");
}
