//! HTTPS of the server's own: HTTP/1.1 and HTTP/2, certificates that change, and clients that never finish a handshake.

use std::fs;
use std::io::Read as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hyper::Method;
use metering_core::Credits;
use metering_tests::client::exchange;
use metering_tests::server::{Server, ServerSetup};
use metering_tests::site::Site;

use crate::support::certificates::Loopback;
use crate::support::https::{Https, Version};
use crate::support::wait;

const VERSIONS: [Version; 2] = [Version::One, Version::Two];

fn with_certificate(site: &Site, files: &Loopback) -> ServerSetup {
    let server = site.server().set("METERING_TLS__CERTIFICATE", &files.identity.certificate.display().to_string());
    server.set("METERING_TLS__KEY", &files.identity.key.display().to_string())
}

fn connect(server: &Server, files: &Loopback, version: Version) -> Https {
    Https::connect(server.address(), &files.authority, version).unwrap()
}

/// Puts another certificate of another authority in place. The key file is written last.
fn rotate(files: &Loopback) -> Loopback {
    let next = Loopback::new();
    fs::copy(&next.identity.certificate, &files.identity.certificate).unwrap();
    fs::copy(&next.identity.key, &files.identity.key).unwrap();
    next
}

#[test]
fn both_versions_serve_the_api_and_charge_exactly() {
    let (site, files) = (Site::verified(), Loopback::new());
    let account = site.account("1");
    let server = with_certificate(&site, &files).start();
    for version in VERSIONS {
        let mut client = connect(&server, &files, version);
        let called = client.get("/mpp/ethPrice", Some(&account.api_key));
        assert_eq!((called.status, called.header("x-bds-credit-charged")), (200, "0.0006944444"), "{version:?}");
        let signup = format!(r#"{{"agent_name": "agent", "email": "{version:?}@example.com"}}"#);
        let signup = client.send(Method::POST, "/signup/initiate", None, &signup).unwrap();
        let url = format!("https://{}/verify", server.address());
        assert!(signup.text.contains(&url), "{version:?}: {}", signup.text);
        let tools = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}"#;
        let tools = client.send(Method::POST, "/mcp", Some(&account.api_key), tools).unwrap();
        assert!(tools.status == 200 && tools.text.contains("ethPrice"), "{version:?}: {tools:?}");
        assert_eq!(client.get("/nowhere", None).status, 404, "{version:?}");
    }
    let called = connect(&server, &files, Version::Two).get_at_once("/mpp/ethPrice", &account.api_key, 50);
    assert!(called.iter().all(|response| response.status == 200), "{called:?}");
    // 52 charges of 5 / 7200 credits each.
    let balance = connect(&server, &files, Version::One).get("/credits/balance", Some(&account.api_key)).text;
    let balance: serde_json::Value = serde_json::from_str(&balance).unwrap();
    let left = Credits::from_atoms(Credits::from_whole(1).unwrap().atoms() / 7_200 * (7_200 - 52 * 5));
    assert_eq!(balance["credit_balance"].to_string(), left.to_string());
}

#[test]
fn streams_of_both_versions_end_when_their_clients_leave() {
    let (site, files) = (Site::new(), Loopback::new());
    let account = site.account("1");
    let server = with_certificate(&site, &files).set("METERING_SAMPLE__BLOCK_TIME", "100ms").start();
    for version in VERSIONS {
        let mut client = connect(&server, &files, version);
        let mut stream = client.open("/mpp/stream/allTrades", &account.api_key);
        assert_eq!(stream.status(), 200, "{version:?}");
        let events: Vec<_> = (0..3).map(|_| client.piece(&mut stream)).collect();
        assert!(events.iter().any(|event| event.contains("data:")), "{version:?}: {events:?}");
        if version == Version::Two {
            assert_eq!(client.get("/health", None).status, 200, "beside the stream");
        }
        let open = || {
            let metrics = connect(&server, &files, Version::One).get("/metrics", None).text;
            metrics.lines().find(|line| line.starts_with("metering_streams_open")).unwrap_or_default().to_owned()
        };
        assert_eq!(open(), "metering_streams_open 1", "{version:?}");
        drop(stream);
        drop(client);
        wait::until("the stream's slot is free", || open() == "metering_streams_open 0");
    }
}

#[test]
fn certificates_change_without_closing_a_connection() {
    let (site, files) = (Site::new(), Loopback::new());
    let server = with_certificate(&site, &files).start();
    let mut open = VERSIONS.map(|version| connect(&server, &files, version));
    let first = open[0].certificate.clone();

    fs::write(&files.identity.key, "not a key").unwrap();
    server.expect_log("the new certificate cannot be used; keeping the old one");
    server.expect_log("has no private key in PEM form");
    assert_eq!(connect(&server, &files, Version::Two).certificate, first, "a bad file changes nothing");

    let next = rotate(&files);
    server.expect_log("new connections get the new certificate");
    wait::until("the new certificate is shown", || {
        Https::connect(server.address(), &next.authority, Version::Two).is_ok_and(|new| new.certificate != first)
    });
    for client in &mut open {
        assert_eq!(client.get("/health", None).status, 200, "an open connection continues");
    }
    assert!(!server.log().contains("PRIVATE KEY"), "{}", server.log());
}

#[test]
fn a_server_with_unusable_files_does_not_start() {
    let (site, files, other) = (Site::new(), Loopback::new(), Loopback::new());
    let output =
        with_certificate(&site, &files).set("METERING_TLS__KEY", &other.identity.key.display().to_string()).run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stderr.contains("tls.key") && output.stderr.contains("is not the key of the certificate"),
        "{output:?}"
    );
}

#[test]
fn plain_http_is_told_to_use_https() {
    let (site, files) = (Site::new(), Loopback::new());
    let server = with_certificate(&site, &files).start();
    let response = exchange(server.address(), b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let response = String::from_utf8(response).unwrap();
    assert!(response.starts_with("HTTP/1.1 400 ") && response.contains("use a URL with https://"), "{response}");
    assert_eq!(exchange(server.address(), b"\x00\x01\x02").unwrap(), b"", "anything else is closed");
    let metrics = connect(&server, &files, Version::Two).get("/metrics", None).text;
    assert!(metrics.contains(r#"metering_tls_handshakes_failed_total{reason="plain_http"} 1"#), "{metrics}");
}

#[test]
fn handshakes_that_never_end_keep_nobody_out() {
    let (site, files) = (Site::new(), Loopback::new());
    let account = site.account("1");
    let server = with_certificate(&site, &files)
        .set("METERING_HTTP__MAX_CONNECTIONS", "8")
        .set("METERING_HTTP__HEADER_TIMEOUT", "2s")
        .start();
    let mut silent: Vec<_> = (0..32).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let mut half = TcpStream::connect(server.address()).unwrap();
    // A record of a handshake that announces more than is sent.
    std::io::Write::write_all(&mut half, &[22, 3, 1, 2, 0, 1, 0, 1, 252]).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    let called = connect(&server, &files, Version::Two).get("/mpp/ethPrice", Some(&account.api_key));
    assert_eq!(called.status, 200);
    let started = Instant::now();
    for stream in silent.iter_mut().chain([&mut half]) {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(started.elapsed() < Duration::from_secs(50), "{:?}", started.elapsed());
}

#[test]
fn idle_http2_connections_close_and_do_not_delay_a_stop() {
    let (site, files) = (Site::verified(), Loopback::new());
    let account = site.account("1");
    let mut server = with_certificate(&site, &files).set("METERING_HTTP__HEADER_TIMEOUT", "1s").start();
    let mut idle = connect(&server, &files, Version::Two);
    assert_eq!(idle.get("/health", None).status, 200);
    std::thread::sleep(Duration::from_secs(3));
    assert!(idle.send(Method::GET, "/health", None, "").is_err(), "closed after header_timeout");

    let mut busy = connect(&server, &files, Version::Two);
    let stream = busy.open("/mpp/stream/allTrades", &account.api_key);
    assert_eq!(stream.status(), 200);
    let started = Instant::now();
    server.terminate();
    assert!(server.wait().success());
    assert!(started.elapsed() < Duration::from_secs(18), "{:?}", started.elapsed());
}
