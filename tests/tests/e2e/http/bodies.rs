//! Well-formed requests with bad bodies.

use std::io::Write;
use std::time::Duration;

use metering_tests::client::{connect, read_all};
use metering_tests::response::Response;
use metering_tests::site::Site;

use crate::support::upstream::{Upstream, catalogue, served};
use crate::support::wire::balance;

#[test]
fn bodies_are_accepted_up_to_the_limit() {
    let (_site, upstream, account, server) = served("1");
    let client = server.client_with(&account.api_key);
    let largest = vec![b'x'; 65_536];
    let response = client.send("POST", "/api/echo", Some(&largest)).expect(200);
    assert_eq!(response.body, largest);
    for excess in [1, 1_000_000] {
        let body = vec![b'x'; 65_536 + excess];
        let response = client.send("POST", "/api/echo", Some(&body)).expect(413);
        assert_eq!(response.error(), "payload_too_large");
        let response = server.client().send("POST", "/internal/billing/deduct", Some(&body)).expect(413);
        assert_eq!(response.error(), "payload_too_large");
    }
    assert_eq!(upstream.seen().len(), 1);
    assert_eq!(balance(&client), "0.9998611111");
}

#[test]
fn body_announced_as_too_large_is_refused_before_it_is_sent() {
    let site = Site::new();
    let server = site.server().start();
    // The last is too large for the transport, which refuses it itself.
    for (length, refusal) in [("65537", 413), ("1000000000000", 413), ("18446744073709551615", 431)] {
        let mut stream = connect(server.address()).unwrap();
        let head = format!("POST /internal/billing/deduct HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let response = Response::parse(&read_all(&mut stream).unwrap());
        assert_eq!(response.unwrap().status, refusal, "{length}");
    }
}

#[test]
fn endless_chunked_body_is_refused_at_the_limit() {
    let (_site, upstream, account, server) = served("1");
    let mut stream = connect(server.address()).unwrap();
    let head = format!(
        "POST /api/echo HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        account.api_key
    );
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [b"1000\r\n".as_slice(), &[b'x'; 4096], b"\r\n"].concat();
    let mut sent = 0;
    while sent < 64 << 20 && stream.write_all(&chunk).is_ok() {
        sent += chunk.len();
    }
    assert!(sent < 32 << 20, "{sent} bytes were accepted");
    assert_eq!(upstream.seen().len(), 0);
    assert_eq!(balance(&server.client_with(&account.api_key)), "1");
}

#[test]
fn body_limit_is_configurable() {
    let site = Site::new();
    let server = site.server().set("METERING_HTTP__MAX_BODY_BYTES", "10").start();
    assert_eq!(server.client().send("POST", "/internal/billing/deduct", Some(&[b' '; 11])).status, 413);
    assert_eq!(server.client().send("POST", "/internal/billing/deduct", Some(&[b' '; 10])).status, 404);
}

#[test]
fn expect_continue_is_honoured() {
    let (_site, _upstream, account, server) = served("1");
    let mut stream = connect(server.address()).unwrap();
    let head = format!(
        "POST /api/echo HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nConnection: close\r\nExpect: 100-continue\r\n\
         Content-Length: 5\r\n\r\n",
        account.api_key
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut interim = [0; 25];
    std::io::Read::read_exact(&mut stream, &mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").unwrap();
    let response = Response::parse(&read_all(&mut stream).unwrap()).unwrap();
    assert_eq!((response.status, response.text().as_str()), (200, "hello"));
}

#[test]
fn slow_but_steady_upload_is_served_and_a_trickle_is_not() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let account = site.account("1");
    let setup = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site));
    let setup = setup.set("METERING_HTTP__BODY_TIMEOUT", "1s").set("METERING_HTTP__BODY_MIN_RATE", "50");
    let server = setup.start();
    // bytes in each of 30 pieces, which are 100 ms apart, and the status
    for (size, status) in [(40, 200), (1, 408)] {
        let (mut stream, length) = (connect(server.address()).unwrap(), 30 * size);
        let head = format!(
            "POST /api/echo HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n",
            account.api_key
        );
        stream.write_all(head.as_bytes()).unwrap();
        for _ in 0..30 {
            std::thread::sleep(Duration::from_millis(100));
            if stream.write_all(&vec![b'x'; size]).is_err() {
                break;
            }
        }
        let response = Response::parse(&read_all(&mut stream).unwrap()).unwrap();
        assert_eq!(response.status, status, "{size}: {}", response.text());
        assert!(status != 200 || response.body.len() == length);
    }
    assert_eq!(balance(&server.client_with(&account.api_key)), "0.9998611111", "only one was charged");
}
