//! A small loopback server that follows a script, even in ways that no real server should.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// A scripted server's reaction to a request.
pub(crate) enum Reply {
    /// Sends these pieces, each in its own packet, and waits for the next request.
    Send(Vec<Vec<u8>>),
    /// Sends these bytes and closes properly.
    SendAndClose(Vec<u8>),
    /// Sends these bytes and resets the connection.
    SendAndReset(Vec<u8>),
    /// Keeps the connection open and sends nothing.
    Silence,
}

/// A request to the server: its connection, its index on that connection (both from zero), and its first line.
pub(crate) struct ReceivedRequest<'a> {
    pub(crate) connection: usize,
    pub(crate) request: usize,
    pub(crate) line: &'a str,
}

/// Starts a server; it runs until the process ends.
pub(crate) fn serve(script: impl Fn(&ReceivedRequest<'_>) -> Reply + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let script = Arc::new(script);
    std::thread::spawn(move || {
        for (connection, stream) in listener.incoming().enumerate() {
            let script = Arc::clone(&script);
            std::thread::spawn(move || handle(stream.unwrap(), connection, &*script));
        }
    });
    address
}

fn handle(mut stream: TcpStream, connection: usize, script: &dyn Fn(&ReceivedRequest<'_>) -> Reply) {
    stream.set_nodelay(true).unwrap();
    for request in 0.. {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            match stream.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                _ => return,
            }
        }
        let line = String::from_utf8(head).unwrap().lines().next().unwrap().to_owned();
        match script(&ReceivedRequest { connection, request, line: &line }) {
            Reply::Send(pieces) => {
                for (index, piece) in pieces.iter().enumerate() {
                    if index > 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    if stream.write_all(piece).is_err() {
                        return;
                    }
                }
            }
            Reply::SendAndClose(bytes) => return stream.write_all(&bytes).unwrap(),
            Reply::SendAndReset(bytes) => {
                stream.write_all(&bytes).unwrap();
                return reset(&stream);
            }
            Reply::Silence => {
                // Ends when the client gives up.
                let _ = stream.read(&mut [0]);
                return;
            }
        }
    }
}

/// Turns the next close into a reset: the kernel sends one when a socket with zero linger time is closed.
fn reset(stream: &TcpStream) {
    let stream = stream.try_clone().unwrap();
    stream.set_nonblocking(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::net::TcpStream::from_std(stream).unwrap().set_zero_linger().unwrap() });
}
