//! The memory that bodies may take: requests beyond it are refused, and responses beyond it are passed on.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use metering_tests::client::read_all;
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::json;
use socket2::{Domain, Socket, Type};

use crate::mcp::metric;
use crate::support::script::{Script, chunk, chunked, last_chunk};
use crate::support::upstream::{Upstream, catalogue};
use crate::support::wait::until;
use crate::support::wire::balance;

const KEPT: &str = "metering_bodies_kept_bytes";

/// A connection from 127.0.0.`host` whose client has room for this much that it has not read.
fn connect_from(server: &Server, host: u8, unread: Option<usize>) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    if let Some(unread) = unread {
        socket.set_recv_buffer_size(unread).unwrap();
    }
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0)).into()).unwrap();
    socket.connect(&server.address().into()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket.into()
}

/// Begins a request with a body of this length, and sends part of it.
fn begin(stream: &mut TcpStream, path: &str, api_key: &str, length: usize, part: &[u8]) {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {api_key}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let _ = stream.write_all(part);
}

fn response(mut stream: TcpStream) -> Response {
    Response::parse(&read_all(&mut stream).unwrap()).unwrap()
}

#[test]
fn request_without_room_for_its_body_gets_503_until_there_is_some() {
    let (site, upstream) = (Site::verified(), Upstream::start());
    let account = site.account("1");
    let setup = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site));
    let setup = setup.set("METERING_HTTP__MAX_BODY_BYTES", "100000");
    let setup = setup.set("METERING_HTTP__BODY_BUDGET_BYTES", "250000");
    let server = setup.set("METERING_HTTP__BODY_BUDGET_PER_ADDRESS_BYTES", "110000").start();
    let (key, body) = (account.api_key.as_str(), vec![b'x'; 100_000]);
    let send = |host: u8, size: usize| {
        let mut stream = connect_from(&server, host, None);
        begin(&mut stream, "/api/echo", key, size, &body[..size]);
        response(stream)
    };
    let mut first = connect_from(&server, 2, None);
    begin(&mut first, "/api/echo", key, 100_000, &body[..90_000]);
    until("the body has arrived", || metric(&server, KEPT) >= 90_000);
    let mut second = connect_from(&server, 3, None);
    begin(&mut second, "/api/echo", key, 100_000, &body[..90_000]);
    until("both bodies have arrived", || metric(&server, KEPT) >= 180_000);
    // From the first's address, and from another one.
    for host in [2, 4] {
        let refused = send(host, 80_000);
        assert_eq!((refused.status, refused.error().as_str()), (503, "overloaded"), "{host}");
        assert_eq!(refused.header("retry-after"), Some("1"), "{host}");
    }
    assert_eq!(send(4, 1_000).status, 200, "there is room for less");
    for reason in ["address", "server"] {
        let name = format!("metering_bodies_refused_total{{reason=\"{reason}\"}}");
        assert_eq!(metric(&server, &name), 1, "{reason}");
    }
    for mut stream in [first, second] {
        stream.write_all(&body[90_000..]).unwrap();
        let served = response(stream);
        assert_eq!((served.status, served.body.len()), (200, 100_000));
    }
    assert_eq!(send(4, 80_000).status, 200);
    until("all is given back", || metric(&server, KEPT) == 0);
    assert_eq!(balance(&server.client_with(key)), "0.9994444444", "four were charged");
}

/// The most memory that a process has had, in KiB.
#[cfg(target_os = "linux")]
fn peak_kib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn clients_that_do_not_read_json_stay_within_the_budget() {
    const CLIENTS: usize = 60;
    let (site, upstream) = (Site::verified(), Script::start());
    let account = site.account("100");
    let by_usage = json!({"max": "0.5", "units": {"tokens": "0.001"}, "report": {"json": {"tokens": "/usage/total"}}});
    let route = |path: &str, replay: bool| {
        let mut route = json!({"path": path, "method": "POST", "metered": true, "replay": replay});
        route["price"] = by_usage.clone();
        route
    };
    let catalogue = json!({"market": "T", "version": 1, "endpoints": [route("/whole", false), route("/kept", true)]});
    let catalogue = site.write("json.json", &catalogue.to_string()).display().to_string();
    let setup = site.server().args(["--upstream", &upstream.url(), "--catalogue", &catalogue]);
    let server = setup.set("METERING_HTTP__BODY_BUDGET_BYTES", "8000000").start();
    let before = peak_kib(&server);
    // A little less than 1 MB, in pieces that arrive separately.
    let piece = format!("3e8\r\n{}\r\n", "x".repeat(1_000));
    let end = chunk(r#""], "usage": {"total": 40}}"#);
    let steps = [chunked("Content-Type: application/json\r\n"), chunk(r#"{"data": [""#), json!([piece, 950]), end];
    let body = json!({"steps": [steps[0], steps[1], steps[2], steps[3], last_chunk("")]}).to_string();
    let streams: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let mut stream = connect_from(&server, 2, Some(4_096));
            let path = if number % 2 == 0 { "/whole" } else { "/kept" };
            begin(&mut stream, path, &account.api_key, body.len(), body.as_bytes());
            stream
        })
        .collect();
    upstream.wait_for_requests(CLIENTS);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(3) {
        let kept = metric(&server, KEPT);
        // Half of the budget, and the requests.
        assert!(kept <= 4_000_000 + 200_000, "{kept} bytes are kept");
        std::thread::sleep(Duration::from_millis(50));
    }
    let grown = peak_kib(&server) - before;
    assert!(grown < 60 << 10, "{grown} KiB more than before");
    let reading: Vec<_> = streams.into_iter().map(|stream| std::thread::spawn(move || response(stream))).collect();
    for reading in reading {
        let response = reading.join().unwrap();
        assert_eq!((response.status, response.body.len() > 950_000), (200, true));
    }
    let client = server.client_with(&account.api_key);
    until("all reports are read", || balance(&client) == "97.6");
}
