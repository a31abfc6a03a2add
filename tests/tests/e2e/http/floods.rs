//! Floods of connections: clients that hold many idle connections do not lock out others.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use metering_tests::client::connect;
use metering_tests::server::{Server, ServerSetup};
use metering_tests::site::Site;
use socket2::{Domain, Socket, Type};

use crate::mcp::metric;
use crate::support::upstream::{Upstream, catalogue};
use crate::support::wait::{until, until_within};
use crate::support::wire::BASE;

/// The longest that an honest client may wait, on a machine that is busy with a flood.
const MAX_LATENCY: Duration = Duration::from_secs(30);

/// A connection from 127.0.0.`host`.
fn connect_from(host: u8, server: &Server) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0)).into()).unwrap();
    socket.connect(&server.address().into()).unwrap();
    socket.set_tcp_nodelay(true).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket.into()
}

fn limits(setup: ServerSetup, most: usize, per_address: usize) -> ServerSetup {
    setup
        .set("METERING_HTTP__MAX_CONNECTIONS", &most.to_string())
        .set("METERING_HTTP__MAX_CONNECTIONS_PER_ADDRESS", &per_address.to_string())
}

fn closed(server: &Server, reason: &str) -> u64 {
    metric(server, &format!("metering_connections_closed_total{{reason=\"{reason}\"}}"))
}

/// Whether the other end has closed.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0; 512]);
    stream.set_nonblocking(false).unwrap();
    match read {
        Ok(count) => count == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn idle_flood_from_few_addresses_delays_no_one_else() {
    let site = Site::verified();
    let account = site.account("1");
    // Nothing times out during the test: only the limits make room.
    let server = limits(site.server(), 100, 50).set("METERING_HTTP__HEADER_TIMEOUT", "10m").start();
    let mut flood: Vec<_> = Vec::new();
    for round in 0..4 {
        for host in 2..6 {
            for number in 0..40 {
                let mut stream = connect_from(host, &server);
                // Some send nothing, some part of a head, some part of a body; some have already had a response.
                let started: &[u8] = match number % 4 {
                    0 => b"",
                    1 => b"GET /health HTTP/1.1\r\nHost: a\r\n",
                    2 => b"POST /signup/initiate HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{",
                    _ => b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
                };
                let _ = stream.write_all(started);
                flood.push(stream);
            }
        }
        let started = Instant::now();
        let _ = server.client().get("/health").expect(200);
        let _ = server.client_with(&account.api_key).get(BASE).expect(200);
        assert!(started.elapsed() < MAX_LATENCY, "round {round}: {:?}", started.elapsed());
    }
    // Connections take a moment to close.
    until_within(MAX_LATENCY, "connections are closed", || metric(&server, "metering_connections_open") <= 100);
    assert!(closed(&server, "server_limit") > 0);
    drop(flood);
}

#[test]
fn connections_are_limited_per_address() {
    let site = Site::new();
    let setup = limits(site.server(), 1_000, 20).set("METERING_HTTP__HEADER_TIMEOUT", "10m");
    let server = setup.set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.9").start();
    let mut clients: Vec<_> = (0..20).map(|_| connect_from(2, &server)).collect();
    let _ = server.client().get("/health").expect(200);
    // New connections would not be closed, because their client might be about to send a request.
    std::thread::sleep(Duration::from_millis(500));
    clients.extend((0..20).map(|_| connect_from(2, &server)));
    let mut proxied: Vec<_> = (0..50).map(|_| connect_from(9, &server)).collect();
    let _ = server.client().get("/health").expect(200);
    assert_eq!(closed(&server, "address_limit"), 20);
    let open = |streams: &mut [TcpStream]| {
        streams.iter_mut().map(|stream| !is_closed(stream)).collect::<Vec<_>>().iter().filter(|open| **open).count()
    };
    let started = Instant::now();
    while open(&mut clients) > 20 && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!((open(&mut clients), open(&mut proxied)), (20, 50));
    assert!(clients[..20].iter_mut().all(is_closed), "the oldest are closed");
}

#[test]
fn requests_in_progress_are_not_closed_for_new_connections() {
    let (site, upstream) = (Site::verified(), Upstream::start());
    let account = site.account("1");
    let setup = limits(site.server(), 4, 4).args(["--upstream", &upstream.url()]).args(catalogue(&site));
    let server = setup.start();
    let slow = server.client_with(&account.api_key);
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let slow = slow.clone();
            std::thread::spawn(move || slow.get("/api/slow/1500"))
        })
        .collect();
    until("the requests have arrived", || upstream.seen().len() >= 4);
    // A request from elsewhere waits for its turn.
    let mut other = connect_from(7, &server);
    other.write_all(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    other.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    for waiting in waiting {
        assert_eq!(waiting.join().unwrap().expect(200).text(), "at last");
    }
}

#[test]
fn unread_pipelined_responses_are_dropped_in_time() {
    let site = Site::new();
    let server = limits(site.server(), 50, 50).set("METERING_HTTP__WRITE_TIMEOUT", "2s").start();
    let request = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n".repeat(200);
    let mut hostile: Vec<_> = (0..50).map(|number| connect_from(2 + number % 4, &server)).collect();
    for stream in &mut hostile {
        stream.write_all(&request).unwrap();
    }
    let started = Instant::now();
    let _ = server.client().get("/health").expect(200);
    assert!(started.elapsed() < MAX_LATENCY, "{:?}", started.elapsed());
    // All are closed in the end, even if no other client needs the slots.
    let all_closed = || metric(&server, "metering_connections_open") <= 1;
    until_within(Duration::from_secs(90), "unread connections are closed", all_closed);
    assert!(closed(&server, "write_timeout") > 0);
}

#[test]
fn unread_streams_end_with_their_key() {
    let (site, upstream) = (Site::verified(), Upstream::start());
    let (account, other) = (site.account("1"), site.account("1"));
    let setup = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site));
    let server = setup.set("METERING_HTTP__WRITE_TIMEOUT", "10m").start();
    let client = server.client_with(&account.api_key);
    let unread: Vec<_> = (0..8).map(|_| client.open("/api/events")).collect();
    let mut others = server.client_with(&other.api_key).open("/api/events");
    upstream.wait_for_streams(9);
    let event = "x".repeat(1 << 20);
    for _ in 0..24 {
        upstream.send(&event);
        // The other client reads, so its stream continues.
        let mut left = event.len() + "data: \n\n".len();
        while left > 0 {
            left -= others.piece().unwrap().len();
        }
    }
    let _ = site.admin_json(&["account", "revoke", &account.org_id, "--yes"]);
    let has_ended = || metric(&server, "metering_streams_open") <= 1;
    until_within(Duration::from_secs(50), "unread streams end with their key", has_ended);
    upstream.wait_for_streams(1);
    assert_eq!(closed(&server, "stream_ended"), 8, "the server closed the unread streams");
    upstream.send("for the other");
    let _ = others.read_until("for the other");
    drop(unread);
}

#[cfg(target_os = "linux")]
#[test]
fn open_file_limit_is_raised_and_bounds_connections() {
    let site = Site::new();
    let server = site.server().start();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let [soft, hard] = [3, 4].map(|column| line.split_whitespace().nth(column).unwrap().parse::<u64>().unwrap());
    assert!(soft == hard || soft >= 10_256, "{line}");
    drop(server);
    let server = site.server().set("METERING_HTTP__MAX_CONNECTIONS", "4000000000").start();
    server.expect_log("ulimit -n");
    let _ = connect(server.address()).unwrap();
    let _ = server.client().get("/health").expect(200);
}
