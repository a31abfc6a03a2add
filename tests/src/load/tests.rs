//! Runs against small loopback servers that follow a script.

use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::*;
use crate::scripted::{Reply, serve};

fn send(text: impl Into<Vec<u8>>) -> Reply {
    Reply::Send(vec![text.into()])
}

fn get(paths: usize) -> Vec<Vec<u8>> {
    (0..paths).map(|path| request("GET", &format!("/{path}"), None, &[])).collect()
}

fn requests(count: u64) -> Stop {
    Stop::AfterRequests(count)
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[test]
fn responses_are_counted_by_status_and_timed() {
    let address = serve(|received| match received.line {
        "GET /3 HTTP/1.1" => send("HTTP/1.1 402 Payment Required\r\ncontent-length: 0\r\n\r\n"),
        _ => send(OK),
    });
    let result = run(LoadPlan::new(address, 3, requests(40), get(4)));
    assert_eq!(result.by_status, [(200, 30), (402, 10)].into(), "{result:?}");
    assert_eq!((result.errors, result.first_error.as_deref()), (0, None));
    assert_eq!((result.responses(), result.with_status(402), result.with_status(500)), (40, 10, 0));
    assert_eq!(result.latencies.count(), 40);
    assert!(result.latencies.max().unwrap() <= result.elapsed);
    let rate = result.requests_per_second() * result.elapsed.as_secs_f64();
    assert!((39.9..40.1).contains(&rate), "{rate}");
}

#[test]
fn every_body_framing_is_read_to_its_end() {
    let long = "x".repeat(300_000);
    // name, request, response
    let table = [
        ("length", "GET", OK.to_owned()),
        ("longer than any buffer", "GET", format!("HTTP/1.1 200 OK\r\ncontent-length: 300000\r\n\r\n{long}")),
        ("no content", "GET", "HTTP/1.1 204 No Content\r\n\r\n".to_owned()),
        ("head", "HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n".to_owned()),
        ("interim", "GET", format!("HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n{OK}")),
        (
            "chunked",
            "GET",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\nA;x=y\r\n0123456789\r\n0\r\nT: t\r\n\r\n"
                .to_owned(),
        ),
        (
            "chunk longer than any buffer",
            "GET",
            format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n493e0\r\n{long}\r\n0\r\n\r\n"),
        ),
    ];
    for (name, method, response) in table {
        let bytes = response.into_bytes();
        let address = serve(move |_| send(bytes.clone()));
        let plan = LoadPlan::new(address, 2, requests(20), vec![request(method, "/", None, &[])]);
        let result = run(plan);
        assert_eq!((result.responses(), result.errors), (20, 0), "{name}: {result:?}");
    }
}

#[test]
fn responses_split_across_packets_are_reassembled() {
    let responses = [
        OK,
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ];
    for response in responses {
        for piece_bytes in [1, 2, 7, 40] {
            let address = serve(move |_| Reply::Send(response.as_bytes().chunks(piece_bytes).map(Vec::from).collect()));
            let result = run(LoadPlan::new(address, 1, requests(3), get(1)));
            assert_eq!((result.with_status(200), result.errors), (3, 0), "{response} by {piece_bytes}: {result:?}");
        }
    }
}

#[test]
fn reset_mid_response_fails_only_that_connection() {
    let address = serve(|received| match (received.connection, received.request) {
        (0, 0) => Reply::SendAndReset(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec()),
        _ => send(OK),
    });
    let result = run(LoadPlan::new(address, 4, requests(2_000), get(1)));
    assert_eq!(result.errors, 1, "{result:?}");
    assert!(result.first_error.as_deref().unwrap().contains("reset"), "{result:?}");
    assert_eq!(result.with_status(200), 2_000 - 1, "the other connections send the rest");
}

#[test]
fn a_server_that_goes_away_ends_the_run_early() {
    // The bytes that the server sends before it closes: never a complete response.
    for last in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok"] {
        let address = serve(move |received| match received.request {
            0..10 => send(OK),
            _ => Reply::SendAndClose(last.into()),
        });
        let plan = LoadPlan::new(address, 8, Stop::After(Duration::from_secs(60)), get(1));
        let started = Instant::now();
        let result = run(plan);
        assert_eq!((result.with_status(200), result.errors), (80, 8), "{last:?}: {result:?}");
        assert!(started.elapsed() < Duration::from_secs(50));
    }
}

#[test]
fn refused_connections_are_counted_as_errors() {
    // Bound but not listening, so no other process can get the port.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let result = run(LoadPlan::new(address, 5, Stop::After(Duration::from_secs(60)), get(1)));
    assert_eq!((result.responses(), result.errors), (0, 5), "{result:?}");
    assert_eq!((result.latencies.p50(), result.requests_per_second()), (None, 0.0));
}

#[test]
fn connections_are_spread_over_servers() {
    let seen = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
    let server = |connections: &Arc<AtomicUsize>| {
        let seen = Arc::clone(connections);
        serve(move |received| {
            seen.fetch_max(received.connection + 1, Ordering::Relaxed);
            send(OK)
        })
    };
    let addresses = seen.iter().map(server).collect::<Vec<_>>();
    let plan = LoadPlan::new(addresses[0], 8, Stop::After(Duration::from_secs(2)), get(1));
    let result = run(LoadPlan { addresses, ..plan });
    assert_eq!(result.errors, 0, "{result:?}");
    assert_eq!(seen.map(|connections| connections.load(Ordering::Relaxed)), [3, 3, 2]);
}

#[test]
fn plan_starts_at_the_given_request() {
    let lines = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let address = serve(move |received| {
        seen.lock().unwrap().push(received.line.to_owned());
        send(OK)
    });
    let plan = LoadPlan::new(address, 1, requests(4), get(3));
    assert_eq!(run(LoadPlan { first: 5, ..plan }).with_status(200), 4);
    assert_eq!(*lines.lock().unwrap(), [2, 0, 1, 2].map(|path| format!("GET /{path} HTTP/1.1")));
}

#[test]
fn silent_server_times_out() {
    let address = serve(|received| if received.request < 3 { send(OK) } else { Reply::Silence });
    let plan = LoadPlan {
        timeout: Duration::from_secs(1),
        ..LoadPlan::new(address, 2, Stop::After(Duration::from_secs(60)), get(1))
    };
    let result = run(plan);
    assert_eq!((result.with_status(200), result.errors), (6, 2), "{result:?}");
    assert!(result.first_error.as_deref().unwrap().contains("timed out"), "{result:?}");
    assert!((Duration::from_secs(1)..Duration::from_secs(40)).contains(&result.elapsed), "{result:?}");
}

#[test]
fn timeout_applies_to_each_request() {
    // 10 × 250 ms is longer than the timeout, but one of them is not.
    let address = serve(|_| {
        std::thread::sleep(Duration::from_millis(250));
        send(OK)
    });
    let timeout = Duration::from_secs(2);
    let result = run(LoadPlan { timeout, ..LoadPlan::new(address, 1, requests(10), get(1)) });
    assert_eq!((result.with_status(200), result.errors), (10, 0), "{result:?}");
    assert!(result.latencies.p50().unwrap() >= Duration::from_millis(250));
}

#[test]
fn connection_closed_by_the_server_is_reopened() {
    let connections = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&connections);
    let address = serve(move |received| {
        seen.fetch_max(received.connection + 1, Ordering::Relaxed);
        match received.line {
            "GET /0 HTTP/1.1" => Reply::SendAndClose(OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").into()),
            _ => Reply::SendAndClose(b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec()),
        }
    });
    let result = run(LoadPlan::new(address, 1, requests(6), get(2)));
    assert_eq!((result.with_status(200), result.errors), (6, 0), "{result:?}");
    assert!(connections.load(Ordering::Relaxed) >= 6);
}

#[test]
fn malformed_response_is_an_error() {
    for nonsense in ["hello\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more"] {
        let address = serve(move |_| send(nonsense));
        let result = run(LoadPlan::new(address, 1, requests(5), get(1)));
        assert_eq!((result.responses(), result.errors), (0, 1), "{nonsense:?}: {result:?}");
        assert!(result.first_error.as_deref().unwrap().contains("malformed response"), "{result:?}");
    }
}

#[test]
fn each_request_is_sent_once_and_observed_once() {
    let address = serve(|received| {
        let path = received.line.split(' ').nth(1).unwrap();
        let status = if path.ends_with('7') { "429 Too Many Requests" } else { "200 OK" };
        send(format!("HTTP/1.1 {status}\r\nX-Path: {path}\r\ncontent-length: 5\r\n\r\n12345"))
    });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let result = run_observed(LoadPlan::new(address, 7, requests(100), get(100)), move |observed| {
        assert_eq!(observed.header("x-path"), Some(format!("/{}", observed.request).as_str()));
        assert_eq!(observed.header("x-other"), None);
        sink.lock().unwrap_or_else(PoisonError::into_inner).push((observed.request, observed.status));
    });
    assert_eq!(result.by_status, [(200, 90), (429, 10)].into(), "{result:?}");
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    let expected: Vec<_> = (0..100).map(|request| (request, if request % 10 == 7 { 429 } else { 200 })).collect();
    assert_eq!(seen, expected);
}

#[test]
fn timed_run_ends_on_time() {
    let address = serve(|_| send(OK));
    let time = Duration::from_secs(1);
    let load = start(LoadPlan::new(address, 4, Stop::After(time), get(3)), |_| ());
    assert!(!load.is_finished());
    let result = load.join();
    assert!((time..Duration::from_secs(30)).contains(&result.elapsed), "{result:?}");
    assert!(result.with_status(200) > 4, "{result:?}");
    assert_eq!(result.errors, 0);
}

#[test]
#[cfg(target_os = "linux")]
fn waiting_generator_is_not_busy() {
    let address = serve(|_| {
        std::thread::sleep(Duration::from_millis(20));
        send(OK)
    });
    let waiting = run(LoadPlan::new(address, 1, requests(10), get(1))).generator_load().unwrap();
    assert!((0.0..0.5).contains(&waiting), "{waiting}");
    let address = serve(|_| send(OK));
    // The observer simulates an overloaded generator.
    let overworked = run_observed(LoadPlan::new(address, 1, requests(10), get(1)), |_| {
        let before = busy::thread_time().unwrap();
        while busy::thread_time().unwrap() - before < Duration::from_millis(20) {}
    });
    assert!(overworked.generator_busy.unwrap() >= Duration::from_millis(200), "{overworked:?}");
    assert!(overworked.generator_load().unwrap() <= 1.01, "{overworked:?}");
}

#[test]
#[should_panic(expected = "an observer's assertion")]
fn observer_panic_reaches_the_caller() {
    let address = serve(|_| send(OK));
    let _ = run_observed(LoadPlan::new(address, 2, requests(10), get(1)), |_| panic!("an observer's assertion"));
}

#[test]
fn debug_output_of_a_plan_hides_keys() {
    let address = "127.0.0.1:1".parse().unwrap();
    let plan = LoadPlan::new(address, 2, requests(10), vec![request("GET", "/", Some("sk_live_secret"), &[])]);
    assert!(!format!("{plan:?}").contains("secret"));
}
