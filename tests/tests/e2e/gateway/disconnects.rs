//! Clients that disconnect: before their request is complete, while they wait, and during the response.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use metering_tests::client::{connect, exchange_and_end};
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};

use crate::support::upstream::served;
use crate::support::wait::until;
use crate::support::wire::{BASE, BASE_CALL, CREDIT, STREAM, amount, balance, usage_events};

fn request(account: &IssuedAccount, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\n\r\n", account.api_key).into_bytes()
}

/// Sends a request and disconnects, sometimes after a pause.
fn request_and_disconnect(server: &Server, request: &[u8], pause: Duration) {
    let mut stream = connect(server.address()).unwrap();
    stream.write_all(request).unwrap();
    std::thread::sleep(pause);
}

#[test]
fn incomplete_request_is_not_charged() {
    let (_site, account, server) = Site::serving("1");
    let request = request(&account, BASE);
    for cut in (1..request.len()).step_by(7) {
        request_and_disconnect(&server, &request[..cut], Duration::ZERO);
    }
    let client = server.client_with(&account.api_key);
    assert_eq!((balance(&client), usage_events(&client)), ("1".to_owned(), 0));
}

#[test]
fn abandoned_request_is_charged_at_most_once() {
    let (_site, account, server) = Site::serving("1");
    let request = request(&account, BASE);
    let sent = 300;
    for number in 0..sent {
        request_and_disconnect(&server, &request, Duration::from_micros(number * 7 % 3_000));
    }
    // One response for both values, because the last requests may still be on their way to the store.
    let summary = server.client_with(&account.api_key).get("/credits/usage/summary").expect(200);
    let events = summary.json()["totals"]["usage_events"].as_u64().unwrap();
    assert!((1..=sent).contains(&events), "{events}");
    let used = i64::try_from(events).unwrap() * BASE_CALL;
    assert_eq!(summary.member("credit_balance"), amount(CREDIT - used));
}

#[test]
fn unread_streams_release_their_slots() {
    let (_site, account, server) =
        Site::serving_with("100", |server| server.set("METERING_GATEWAY__MAX_STREAMS_PER_KEY", "4"));
    let request = request(&account, STREAM);
    for number in 0..200 {
        request_and_disconnect(&server, &request, Duration::from_micros(number * 13 % 4_000));
    }
    until("the streams of disconnected clients end", || {
        server.client().get("/metrics").expect(200).text().contains("metering_streams_open 0\n")
    });
    let open: Vec<_> = (0..4).map(|_| server.client_with(&account.api_key).open(STREAM)).collect();
    assert!(open.iter().all(|stream| stream.status == 200));
}

#[test]
fn disconnect_mid_response_stops_the_upstream() {
    let (_site, upstream, account, server) = served("1");
    let mut response = server.client_with(&account.api_key).open("/api/big/100000");
    assert!(!response.piece().unwrap().is_empty());
    assert_eq!(upstream.open_bodies(), 1);
    drop(response);
    upstream.wait_for_bodies(0);
    assert_eq!(usage_events(&server.client_with(&account.api_key)), 1);
}

#[test]
fn half_closed_client_gets_its_response() {
    let (_site, _upstream, account, server) = served("1");
    let paths = ["/api/echo/word", "/api/slow/700", "/api/big/4", "/credits/balance", "/health"];
    for path in paths {
        for _ in 0..5 {
            let raw = exchange_and_end(server.address(), &request(&account, path)).unwrap();
            let response = Response::parse(&raw).unwrap_or_else(|error| panic!("{path}: {error}")).expect(200);
            assert!(path != "/api/big/4" || response.body.len() == 4 << 20, "{path}: {}", response.body.len());
        }
    }
    // Pipelined requests are served too.
    let three = request(&account, "/api/echo/word").repeat(3);
    let raw = String::from_utf8(exchange_and_end(server.address(), &three).unwrap()).unwrap();
    assert_eq!(raw.matches("HTTP/1.1 200").count(), 3, "{raw}");
    let client = server.client_with(&account.api_key);
    assert_eq!((usage_events(&client), balance(&client)), (18, amount(CREDIT - 18 * BASE_CALL)));
}

/// Opens an event stream, and closes the sending side.
fn half_closed_stream(server: &Server, account: &IssuedAccount) -> TcpStream {
    let mut stream = connect(server.address()).unwrap();
    stream.write_all(&request(account, "/api/events")).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    stream
}

fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        let mut piece = [0; 4_096];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the stream ended before {text:?}: {}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&piece[..count]);
    }
    String::from_utf8(read).unwrap()
}

#[test]
fn half_closed_stream_is_served_while_it_is_read() {
    let (_site, upstream, account, server) = served("1");
    let mut stream = half_closed_stream(&server, &account);
    upstream.wait_for_streams(1);
    let _ = read_until(&mut stream, "text/event-stream");
    for number in 0..3 {
        std::thread::sleep(Duration::from_millis(700));
        upstream.send(&format!("event {number}"));
        let _ = read_until(&mut stream, &format!("data: event {number}\n\n"));
    }
    // A client that no longer reads has disconnected. Its stream ends too, although no event is sent.
    drop(stream);
    upstream.wait_for_streams(0);
}
