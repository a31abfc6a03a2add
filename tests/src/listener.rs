//! Stand-ins on a free port, which handle each connection in its own thread.

use std::io::{self, BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// Listens until the process ends, and calls `handle` with each connection.
pub fn serve(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the machine has a free port");
    let address = listener.local_addr().expect("a listener has an address");
    let handle = Arc::new(handle);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle(client));
        }
    });
    address
}

/// Reads the next request: its head, and a body of the announced length. `None` if the client closed the connection, like
/// one that only checks that someone listens.
///
/// # Errors
/// If the connection breaks off, or the length is not a number.
pub fn read_request(stream: &TcpStream) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse::<usize>().map_err(io::Error::other)?;
        }
        head.push_str(&line);
    }
    if head.is_empty() {
        return Ok(None);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((head, body)))
}
