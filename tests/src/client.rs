//! A small HTTP client that shows responses exactly as they come: no redirects, cookies, retries or hidden headers.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::response::{OpenResponse, Response};

/// How long a response, or its next piece, may take: longer than a busy machine may stall.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A client for one server. Each request has its own connection.
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

    /// Adds an API key.
    #[must_use]
    pub fn with_key(self, api_key: &str) -> Self {
        self.with_header("Authorization", &format!("Bearer {api_key}"))
    }

    /// Adds a header to each request.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// `GET path`.
    #[track_caller]
    #[must_use]
    pub fn get(&self, path: &str) -> Response {
        self.send("GET", path, None)
    }

    /// `POST path` with a JSON body.
    #[track_caller]
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, Some(body.to_string().as_bytes()))
    }

    /// Sends any request.
    #[track_caller]
    #[must_use]
    pub fn send(&self, method: &str, path: &str, body: Option<&[u8]>) -> Response {
        let response = self.try_send(method, path, body);
        response.unwrap_or_else(|error| panic!("{method} {path} got no response: {error}"))
    }

    /// Sends a request to a server that may be about to end.
    ///
    /// # Errors
    /// If no complete response comes.
    pub fn try_send(&self, method: &str, path: &str, body: Option<&[u8]>) -> io::Result<Response> {
        self.request(method, path, body)?.finish()
    }

    /// Opens a stream: returns once the response's head has arrived.
    #[track_caller]
    #[must_use]
    pub fn open(&self, path: &str) -> OpenResponse {
        self.open_with("GET", path)
    }

    /// Like [`Client::open`], with another method.
    #[track_caller]
    #[must_use]
    pub fn open_with(&self, method: &str, path: &str) -> OpenResponse {
        self.request(method, path, None).unwrap_or_else(|error| panic!("{method} {path} got no response: {error}"))
    }

    /// Like [`Client::open_with`], with a JSON body.
    #[track_caller]
    #[must_use]
    pub fn open_with_body(&self, method: &str, path: &str, body: &[u8]) -> OpenResponse {
        let response = self.request(method, path, Some(body));
        response.unwrap_or_else(|error| panic!("{method} {path} got no response: {error}"))
    }

    fn request(&self, method: &str, path: &str, body: Option<&[u8]>) -> io::Result<OpenResponse> {
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
        // A server that refuses a large body may close before it has read it all.
        let _ = stream.write_all(&bytes);
        OpenResponse::read_from(stream)
    }
}

impl std::fmt::Debug for Client {
    /// Leaves out the headers, which hold keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Sends raw bytes, and returns everything received until the server closes; a broken connection counts as closed.
///
/// # Errors
/// If the server neither responds nor closes in time.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = connect(address)?;
    // A server that refuses the input may close before it has read it all.
    let _ = stream.write_all(bytes);
    read_all(&mut stream)
}

/// Like [`exchange`], and closes the sending side afterwards.
///
/// # Errors
/// Same as [`exchange`].
pub fn exchange_and_end(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = connect(address)?;
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    read_all(&mut stream)
}

/// Reads until the server closes; a broken connection counts as closed.
///
/// # Errors
/// If the server does not close in time.
pub fn read_all(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Ok(_) => Ok(all),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(all),
        Err(error) => Err(error),
    }
}

/// Opens a connection.
///
/// # Errors
/// If nothing is listening.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}
