//! A small HTTP client that shows everything as it came: no redirects, no cookies, no retries, no hidden headers.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::answer::{Answer, OpenAnswer};

/// How long an answer, or the next piece of one, may take: longer than a busy machine may stand still.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of one server. Each request has a connection of its own.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    headers: Vec<(String, String)>,
}

impl Client {
    /// A client without a key.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self { address, headers: Vec::new() }
    }

    /// The same with a key.
    #[must_use]
    pub fn with_key(self, api_key: &str) -> Self {
        self.with_header("Authorization", &format!("Bearer {api_key}"))
    }

    /// The same with one more header in each request.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// `GET path`.
    #[track_caller]
    #[must_use]
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None)
    }

    /// `POST path` with a JSON body.
    #[track_caller]
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, Some(body.to_string().as_bytes()))
    }

    /// Any request.
    ///
    /// # Panics
    /// When no answer comes.
    #[track_caller]
    #[must_use]
    pub fn send(&self, method: &str, path: &str, body: Option<&[u8]>) -> Answer {
        let answer = self.try_send(method, path, body);
        answer.unwrap_or_else(|error| panic!("{method} {path} has no answer: {error}"))
    }

    /// Any request, to a server that may be about to end.
    ///
    /// # Errors
    /// When no whole answer comes.
    pub fn try_send(&self, method: &str, path: &str, body: Option<&[u8]>) -> io::Result<Answer> {
        self.request(method, path, body)?.finish()
    }

    /// Opens a stream: returns as soon as the answer's head is there.
    ///
    /// # Panics
    /// When it does not come.
    #[track_caller]
    #[must_use]
    pub fn open(&self, path: &str) -> OpenAnswer {
        self.open_with("GET", path)
    }

    /// As [`Client::open`], with another method.
    ///
    /// # Panics
    /// When the head does not come.
    #[track_caller]
    #[must_use]
    pub fn open_with(&self, method: &str, path: &str) -> OpenAnswer {
        self.request(method, path, None).unwrap_or_else(|error| panic!("{method} {path} has no answer: {error}"))
    }

    fn request(&self, method: &str, path: &str, body: Option<&[u8]>) -> io::Result<OpenAnswer> {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        let mut stream = connect(self.address)?;
        // A server that refuses a large body may close before it has all of it.
        let _ = stream.write_all(&bytes);
        OpenAnswer::read_from(stream)
    }
}

impl std::fmt::Debug for Client {
    /// Without its headers, which hold keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Sends bytes as they are and returns all that comes back until the server closes; breaking off counts as closing.
///
/// # Errors
/// When the server neither answers nor closes for long.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = connect(address)?;
    // A server that refuses what comes may close before it has all of it.
    let _ = stream.write_all(bytes);
    read_all(&mut stream)
}

/// As [`exchange`], and says that nothing more will be sent.
///
/// # Errors
/// As [`exchange`].
pub fn exchange_and_end(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = connect(address)?;
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    read_all(&mut stream)
}

/// Reads until the server closes; breaking off counts as closing.
///
/// # Errors
/// When the server does not close for long.
pub fn read_all(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Ok(_) => Ok(all),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(all),
        Err(error) => Err(error),
    }
}

/// An open connection.
///
/// # Errors
/// When nobody listens.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}
