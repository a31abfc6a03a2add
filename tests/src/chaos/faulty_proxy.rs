//! A proxy with a planted bug: it sits between callers and servers, and does what the service must never do.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::targets::Targets;
use crate::client::{connect, read_all};
use crate::listener;

/// The proxy's faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bug {
    /// Confirms every 40th request without forwarding it.
    Acknowledge,
    /// Forwards every 20th request twice.
    Repeat,
    /// Confirms requests that it could not forward, or that were refused.
    NeverRefuse,
    /// Adds a header to each response that only a hostile upstream would send.
    AddHeader,
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";

/// Starts the proxy, which runs until the process ends, and returns its address.
pub(super) fn start(targets: &Targets, bug: Bug) -> SocketAddr {
    let (targets, count) = (targets.clone(), AtomicUsize::new(1));
    listener::serve(move |client| pass(client, &targets, bug, count.fetch_add(1, Ordering::Relaxed)))
}

fn pass(mut client: TcpStream, targets: &Targets, bug: Bug, number: usize) {
    let _ = client.set_read_timeout(Some(Duration::from_secs(30)));
    let Some(request) = read_request(&mut client) else { return };
    let response = match bug {
        Bug::Acknowledge if number.is_multiple_of(40) => Some(OK.to_vec()),
        Bug::Repeat if number.is_multiple_of(20) => {
            let _ = forward(targets, number, &as_another(&request));
            forward(targets, number, &request)
        }
        Bug::NeverRefuse => match forward(targets, number, &request) {
            Some(response) if response.starts_with(b"HTTP/1.1 200") => Some(response),
            _ => Some(OK.to_vec()),
        },
        Bug::AddHeader => forward(targets, number, &request).map(with_header),
        Bug::Acknowledge | Bug::Repeat => forward(targets, number, &request),
    };
    if let Some(response) = response {
        let _ = client.write_all(&response);
    }
    let _ = client.shutdown(Shutdown::Both);
}

/// The whole request of a client that sends one request per connection.
fn read_request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let length = client.read(&mut buffer).ok().filter(|length| *length > 0)?;
        request.extend_from_slice(&buffer[..length]);
        let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
        let body = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        if request.len() >= end + 4 + body.unwrap_or_default() {
            return Some(request);
        }
    }
}

fn forward(targets: &Targets, number: usize, request: &[u8]) -> Option<Vec<u8>> {
    let mut server = connect(targets.pick(number)?).ok()?;
    server.write_all(request).ok()?;
    read_all(&mut server).ok().filter(|response| !response.is_empty())
}

/// The same request with another idempotency key, if it has one.
fn as_another(request: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(request).replace("\"chaos-", "\"again-").into_bytes()
}

fn with_header(response: Vec<u8>) -> Vec<u8> {
    let at = response.windows(2).position(|window| window == b"\r\n").unwrap_or_default();
    [&response[..at], b"\r\nService-Worker-Allowed: /", &response[at..]].concat()
}
