//! A gate in front of a server: it forwards requests, and can hold one back before or after the server has processed
//! it, so that the client can be killed at exactly that moment.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

/// When a request is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldPoint {
    /// The server never receives it.
    Before,
    /// The server has processed it, but its response is not forwarded.
    After,
}

/// A gate. It runs until the process ends.
#[derive(Debug)]
pub(crate) struct Gate {
    address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
    pending_hold: Arc<Mutex<Option<(String, HoldPoint)>>>,
    held_requests: Receiver<()>,
}

impl Gate {
    pub(crate) fn in_front_of(server: SocketAddr) -> Self {
        let target = Arc::new(Mutex::new(server));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let pending_hold: Arc<Mutex<Option<(String, HoldPoint)>>> = Arc::default();
        let (sender, held_requests) = channel();
        let (shared, forward_target) = (Arc::clone(&pending_hold), Arc::clone(&target));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (pending_hold, sender) = (Arc::clone(&shared), sender.clone());
                let server = *forward_target.lock().unwrap();
                // Ignore errors of a killed client.
                std::thread::spawn(move || {
                    client.and_then(|client| handle_client(client, server, &pending_hold, &sender))
                });
            }
        });
        Self { address, target, pending_hold, held_requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Forwards to another server from now on.
    pub(crate) fn forward_to(&self, server: SocketAddr) {
        *self.target.lock().unwrap() = server;
    }

    /// Holds back the next request that contains `text`.
    pub(crate) fn hold(&self, text: &str, hold_point: HoldPoint) {
        *self.pending_hold.lock().unwrap() = Some((text.to_owned(), hold_point));
    }

    /// Waits until a request is held back.
    #[track_caller]
    pub(crate) fn wait(&self) {
        self.held_requests.recv_timeout(TIMEOUT).expect("the client sends the request");
    }
}

fn handle_client(
    mut client: TcpStream,
    server: SocketAddr,
    pending_hold: &Mutex<Option<(String, HoldPoint)>>,
    sender: &Sender<()>,
) -> io::Result<()> {
    let (head, body) = read_request(&mut client)?;
    let text = format!("{head}{}", String::from_utf8_lossy(&body));
    let hold_point = pending_hold
        .lock()
        .unwrap()
        .take_if(|(wanted, _)| text.contains(wanted.as_str()))
        .map(|(_, hold_point)| hold_point);
    let mut response = Vec::new();
    if hold_point != Some(HoldPoint::Before) {
        let mut server = TcpStream::connect(server)?;
        server.write_all(head.as_bytes())?;
        server.write_all(&body)?;
        server.read_to_end(&mut response)?;
    }
    if hold_point.is_none() {
        return client.write_all(&response);
    }
    let _ = sender.send(());
    // Until the client is gone.
    client.read(&mut [0]).map(|_| ())
}

/// A request's head, changed so that the connection closes after one response, and its body.
fn read_request(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).map_err(io::Error::other)?;
    let lines = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:") && !line.is_empty());
    let mut lines: Vec<_> = lines.collect();
    let length =
        lines.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    lines.push("connection: close");
    let mut body = vec![0; length.unwrap_or(0)];
    client.read_exact(&mut body)?;
    Ok((format!("{}\r\n\r\n", lines.join("\r\n")), body))
}
