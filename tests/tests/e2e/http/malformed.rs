//! Malformed HTTP is rejected or disconnected: it is never served or charged, and never makes the server fail.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use metering_tests::client::{connect, exchange, exchange_and_end, read_all};
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};

use crate::support::wire::{BASE, amount, balance};

struct Fixture {
    site: Site,
    account: IssuedAccount,
    server: Server,
}

fn fixture() -> Fixture {
    let site = Site::new();
    let account = site.account("1");
    let server = site
        .server()
        .set("METERING_HTTP__HEADER_TIMEOUT", "1s")
        .set("METERING_HTTP__BODY_TIMEOUT", "1s")
        .set("METERING_BILLING__INTERNAL_SECRET", "correct horse battery")
        .start();
    Fixture { site, account, server }
}

impl Fixture {
    /// The statuses of all responses to these bytes, in order.
    fn statuses(&self, bytes: &[u8]) -> Vec<u16> {
        statuses_in(&exchange(self.server.address(), bytes).unwrap())
    }

    #[track_caller]
    fn assert_unaffected(&self, charged: i64) {
        let client = self.server.client_with(&self.account.api_key);
        let _ = self.server.client().get("/health").expect(200);
        assert_eq!(balance(&client), amount((7_200 - charged) * 1_000_000));
        let metrics = self.server.client().get("/metrics").expect(200).text();
        assert!(!metrics.contains("status=\"5xx\""), "{metrics}");
        self.site.verify();
    }
}

fn statuses_in(raw: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(raw);
    text.match_indices("HTTP/1.").filter_map(|(at, _)| text.get(at + 9..at + 12)?.parse().ok()).collect()
}

#[test]
fn malformed_requests_get_400_or_a_closed_connection() {
    let fixture = fixture();
    let key = &fixture.account.api_key;
    let head = format!("Host: a\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n");
    let get = format!("GET {BASE} HTTP/1.1\r\n{head}");
    // The bodies contain requests that would be served if the framing were misread.
    let smuggled = format!("GET /mpp/ethPrice HTTP/1.1\r\n{head}\r\n");
    let table: Vec<(&str, Vec<u8>, &[u16])> = vec![
        ("nothing", Vec::new(), &[]),
        ("garbage", vec![0; 512], &[400]),
        ("more garbage", (0..=255_u8).cycle().take(100_000).collect(), &[400]),
        ("a TLS greeting", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), &[400]),
        ("an HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), &[]),
        ("another protocol", b"EHLO mail.example\r\n".to_vec(), &[400]),
        ("HTTP/0.9", format!("GET {BASE}\r\n").into_bytes(), &[400]),
        ("HTTP/3", format!("GET {BASE} HTTP/3.0\r\n{head}\r\n").into_bytes(), &[400, 505]),
        ("a head without an end", get.clone().into_bytes(), &[]),
        ("a space in the target", format!("GET /mpp/eth Price HTTP/1.1\r\n{head}\r\n").into_bytes(), &[400]),
        ("a header without a name", format!("{get}: value\r\n\r\n").into_bytes(), &[400]),
        ("a header without a colon", format!("{get}nonsense\r\n\r\n").into_bytes(), &[400]),
        ("a space before the colon", format!("{get}X-A : 1\r\n\r\n").into_bytes(), &[400]),
        ("a folded header", format!("{get}X-A: 1\r\n 2\r\n\r\n").into_bytes(), &[400]),
        ("a NUL in a header", format!("{get}X-A: \0\r\n\r\n").into_bytes(), &[400]),
        ("two lengths", format!("{get}Content-Length: 0\r\nContent-Length: 5\r\n\r\n{smuggled}").into_bytes(), &[400]),
        ("a list of lengths", format!("{get}Content-Length: 0, 5\r\n\r\n{smuggled}").into_bytes(), &[400]),
        ("a signed length", format!("{get}Content-Length: +5\r\n\r\n{smuggled}").into_bytes(), &[400]),
        ("a negative length", format!("{get}Content-Length: -1\r\n\r\n{smuggled}").into_bytes(), &[400]),
        ("a hexadecimal length", format!("{get}Content-Length: 0x5\r\n\r\n{smuggled}").into_bytes(), &[400]),
        ("an absurd length", format!("{get}Content-Length: 99999999999999999999\r\n\r\n").into_bytes(), &[400, 413]),
        ("an unknown coding", format!("{get}Transfer-Encoding: gzip\r\n\r\n{smuggled}").into_bytes(), &[400, 501]),
        ("a hidden coding", format!("{get}Transfer-Encoding: xchunked\r\n\r\n{smuggled}").into_bytes(), &[400, 501]),
        (
            "chunked is not last",
            format!("{get}Transfer-Encoding: chunked, identity\r\n\r\n{smuggled}").into_bytes(),
            &[400, 501],
        ),
        ("a chunk without a size", format!("{get}Transfer-Encoding: chunked\r\n\r\nzz\r\n").into_bytes(), &[400]),
        (
            "a chunk of absurd size",
            format!("{get}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n").into_bytes(),
            &[400, 413],
        ),
    ];
    for (what, bytes, accepted) in table {
        let statuses = fixture.statuses(&bytes);
        let fine = matches!(statuses[..], [status] if accepted.contains(&status));
        assert!(fine || statuses == accepted, "{what}: {statuses:?}");
    }
    fixture.assert_unaffected(0);
}

#[test]
fn incomplete_request_is_not_served() {
    let fixture = fixture();
    let head = format!("Host: a\r\nAuthorization: Bearer {}\r\n", fixture.account.api_key);
    let get = format!("GET {BASE} HTTP/1.1\r\n{head}");
    for text in [
        get.clone(),
        format!("{get}Content-Length: 10\r\n\r\nabc"),
        format!("{get}Transfer-Encoding: chunked\r\n\r\n5\r\nab"),
        format!("{get}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"),
    ] {
        let raw = exchange_and_end(fixture.server.address(), text.as_bytes()).unwrap();
        let statuses = statuses_in(&raw);
        assert!(matches!(statuses[..], [] | [400]), "{text}: {statuses:?}");
    }
    fixture.assert_unaffected(0);
}

#[test]
fn request_with_length_and_chunks_is_never_read_as_two() {
    let fixture = fixture();
    let head = format!("Host: a\r\nAuthorization: Bearer {}\r\n", fixture.account.api_key);
    let smuggled = format!("GET /mpp/ethPrice HTTP/1.1\r\n{head}\r\n");
    let both = format!(
        "GET {BASE} HTTP/1.1\r\n{head}Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}",
        smuggled.len() + 5
    );
    let statuses = fixture.statuses(both.as_bytes());
    // RFC 9112, section 6.1: chunked wins and the connection closes afterwards, or the request is refused; the rest is
    // not read.
    assert!(matches!(statuses[..], [] | [400] | [200]), "{statuses:?}");
    fixture.assert_unaffected(i64::try_from(statuses.iter().filter(|status| **status == 200).count()).unwrap());
}

#[test]
fn endless_heads_are_too_large() {
    let fixture = fixture();
    let get = format!("GET {BASE} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\n", fixture.account.api_key);
    let long = "a".repeat(100_000);
    let many: String = (0..300).map(|number| format!("X-{number}: 1\r\n")).collect();
    let table = [
        ("a long header", format!("{get}X-Long: {long}\r\n\r\n")),
        ("a long name", format!("{get}{long}: 1\r\n\r\n")),
        ("many headers", format!("{get}{many}\r\n")),
        ("a header without end", format!("{get}X-Long: {}", "a".repeat(1_000_000))),
        ("a line without end", "G".repeat(1_000_000)),
        ("a long path", format!("GET /mpp/pool/{long}/metadata HTTP/1.1\r\n\r\n")),
        ("a path longer than 64 KiB", format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(70_000))),
    ];
    for (what, text) in table {
        let statuses = fixture.statuses(text.as_bytes());
        let fine = statuses.len() <= 1 && statuses.iter().all(|status| [400, 414, 431].contains(status));
        assert!(fine, "{what}: {statuses:?}");
    }
    // The client gets the response if it is still reading, even if it has closed its sending side.
    let few = fixture.statuses(format!("{get}{many}\r\n").as_bytes());
    assert_eq!(few, [431]);
    fixture.assert_unaffected(0);
}

#[test]
fn unusual_http_requests_work_or_are_rejected() {
    let fixture = fixture();
    let auth = format!("Authorization: Bearer {}\r\n", fixture.account.api_key);
    // request, accepted statuses
    let table = [
        (format!("GET {BASE} HTTP/1.0\r\n{auth}\r\n"), vec![200]),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_owned(), vec![404]),
        (format!("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n{auth}\r\n"), vec![400, 404, 405]),
        (
            format!("GET {BASE} HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade, close\r\n{auth}\r\n"),
            vec![200],
        ),
        (
            format!("GET {BASE} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n{auth}\r\n"),
            vec![400],
        ),
        (format!("GET {BASE} HTTP/1.1\r\nConnection: close\r\n{auth}\r\n"), vec![200, 400]),
        (format!("GET {BASE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAccept: image/png\r\n{auth}\r\n"), vec![200]),
    ];
    let mut charged = 0;
    for (text, accepted) in table {
        let statuses = fixture.statuses(text.as_bytes());
        assert!(statuses.len() == 1 && accepted.contains(&statuses[0]), "{text}: {statuses:?}");
        charged += i64::from(statuses[0] == 200);
    }
    fixture.assert_unaffected(charged);
}

#[test]
fn pipelined_requests_get_responses_in_order() {
    let fixture = fixture();
    let request = |path: &str, last: bool| {
        let connection = if last { "close" } else { "keep-alive" };
        let key = &fixture.account.api_key;
        format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: {connection}\r\nAuthorization: Bearer {key}\r\n\r\n")
    };
    let pipelined =
        request(BASE, false) + &request("/mpp/nothing", false) + &request(BASE, true) + &request(BASE, true);
    assert_eq!(fixture.statuses(pipelined.as_bytes()), [200, 404, 200]);
    fixture.assert_unaffected(2);
}

#[test]
fn stalled_connections_are_closed_in_time() {
    let fixture = fixture();
    // what is sent, statuses (0: closed without a response)
    let table: [(&str, &[u16]); 4] = [
        ("", &[0, 408]),
        ("G", &[0, 408]),
        ("GET /mpp/ethPrice HTTP/1.1\r\nHost: a\r\n", &[0, 408]),
        ("GET /health HTTP/1.1\r\nHost: a\r\n\r\n", &[200]),
    ];
    let waiting = table.map(|(beginning, _)| {
        let mut stream = connect(fixture.server.address()).unwrap();
        stream.write_all(beginning.as_bytes()).unwrap();
        let started = Instant::now();
        std::thread::spawn(move || (read_all(&mut stream), started.elapsed()))
    });
    for ((beginning, accepted), waiting) in table.iter().zip(waiting) {
        let (read, took) = waiting.join().unwrap();
        let read = read.unwrap_or_else(|error| panic!("{beginning:?} did not close: {error}"));
        assert!((Duration::from_millis(900)..Duration::from_secs(50)).contains(&took), "{beginning:?}: {took:?}");
        let status = Response::parse(&read).map(|response| response.status).unwrap_or_default();
        assert!(accepted.contains(&status), "{beginning:?}: {status}");
    }
    fixture.assert_unaffected(0);
}

#[test]
fn slowly_trickling_head_times_out() {
    let fixture = fixture();
    let mut stream = connect(fixture.server.address()).unwrap();
    let started = Instant::now();
    let text = format!("GET {BASE} HTTP/1.1\r\nHost: a\r\nX-Slow: {}", "a".repeat(1_000));
    for byte in text.bytes() {
        if stream.write_all(&[byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(40));
        assert!(started.elapsed() < Duration::from_secs(30), "the connection is still open");
    }
    fixture.assert_unaffected(0);
}

#[test]
fn missing_body_gets_408_and_no_charge() {
    let fixture = fixture();
    let key = &fixture.account.api_key;
    let requests = [
        format!("GET {BASE} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Length: 10\r\n\r\nabc"),
        format!(
            "GET {BASE} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc"
        ),
        "POST /internal/billing/deduct HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{".to_owned(),
    ];
    let waiting = requests.map(|request| {
        let mut stream = connect(fixture.server.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let started = Instant::now();
        std::thread::spawn(move || (read_all(&mut stream), started.elapsed()))
    });
    for waiting in waiting {
        let (read, took) = waiting.join().unwrap();
        let response = Response::parse(&read.unwrap()).unwrap();
        assert_eq!((response.status, response.error().as_str()), (408, "request_timeout"));
        assert!((Duration::from_millis(900)..Duration::from_secs(50)).contains(&took), "{took:?}");
    }
    fixture.assert_unaffected(0);
}

#[test]
fn half_open_connections_leave_room_for_others() {
    let (_site, account, server) = Site::serving_with("1", |server| server.set("METERING_HTTP__HEADER_TIMEOUT", "3s"));
    let mut idle: Vec<_> = (0..400).map(|_| connect(server.address()).unwrap()).collect();
    for stream in &mut idle {
        stream.write_all(b"GET /mpp/ethPrice HTTP/1.1\r\n").unwrap();
    }
    let _ = server.client_with(&account.api_key).get(BASE).expect(200);
    for stream in &mut idle {
        let closed = match stream.read(&mut [0; 512]) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        };
        assert!(closed, "a half-open connection stayed open");
    }
}
