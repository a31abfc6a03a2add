//! A small HTTP client that shows everything as it came: no redirects, no cookies, no retries, no hidden headers.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// How long an answer, or the next piece of one, may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client of one server. Each request has a connection of its own.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    headers: Vec<(String, String)>,
}

/// An answer that is all there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers in their order; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

/// An answer whose body is still coming.
#[derive(Debug)]
pub struct OpenAnswer {
    /// Its status.
    pub status: u16,
    /// Its headers in their order; names in lower case.
    pub headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    framing: Framing,
}

#[derive(Debug)]
enum Framing {
    Length(u64),
    /// So many bytes of the present chunk are left; `None` after the last.
    Chunked(Option<u64>),
    UntilEnd,
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

impl Answer {
    /// The value of the first header of that lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The error code in the body, or nothing.
    #[must_use]
    pub fn error(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body["error"].as_str().unwrap_or_default().to_owned()
    }

    /// Holds the status to be this one.
    ///
    /// # Panics
    /// When it is another.
    #[track_caller]
    #[must_use]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} {:?}", self.text(), self.headers);
        self
    }

    /// Reads an answer from bytes that are all there.
    ///
    /// # Errors
    /// When they are not one.
    pub fn parse(bytes: &[u8]) -> io::Result<Self> {
        let mut reader = bytes;
        let (status, headers) = read_head(&mut reader)?;
        let mut framing = framing(status, &headers);
        let mut body = Vec::new();
        while read_some(&mut reader, &mut framing, &mut body)? > 0 {}
        Ok(Self { status, headers, body })
    }
}

impl OpenAnswer {
    fn read_from(stream: TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader)?;
        let framing = framing(status, &headers);
        Ok(Self { status, headers, reader, framing })
    }

    /// The value of the first header of that lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The next piece of the body; empty at its end.
    ///
    /// # Errors
    /// When the connection breaks off, or nothing comes for long.
    pub fn piece(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = Vec::new();
        read_some(&mut self.reader, &mut self.framing, &mut piece)?;
        Ok(piece)
    }

    /// Reads on until the body has this text, and returns all that was read.
    ///
    /// # Panics
    /// When the body ends before.
    #[track_caller]
    pub fn read_until(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        loop {
            let piece = self.piece().unwrap_or_else(|error| panic!("{error} while waiting for {text:?}"));
            assert!(!piece.is_empty(), "the body ended before {text:?}: {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&piece);
            let so_far = String::from_utf8_lossy(&seen);
            if so_far.contains(text) {
                return so_far.into_owned();
            }
        }
    }

    /// Reads to the end.
    ///
    /// # Errors
    /// When the connection breaks off before the body's own end.
    pub fn finish(mut self) -> io::Result<Answer> {
        let mut body = Vec::new();
        while read_some(&mut self.reader, &mut self.framing, &mut body)? > 0 {}
        Ok(Answer { status: self.status, headers: self.headers, body })
    }
}

/// Sends bytes as they are and returns all that comes back until the server closes; breaking off counts as closing.
///
/// # Errors
/// When the server neither answers nor closes for long.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = connect(address)?;
    let _ = stream.write_all(bytes);
    // What says that nothing more comes; a server that waits for more would otherwise wait for its time-out.
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

fn find<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not an HTTP answer: {what:?}"))
}

type Head = (u16, Vec<(String, String)>);

fn read_head(reader: &mut impl BufRead) -> io::Result<Head> {
    let line = read_line(reader)?;
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    let status = status.ok_or_else(|| malformed(&line))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            return Ok((status, headers));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| malformed(&line))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    let line = line.strip_suffix(b"\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(String::from_utf8_lossy(line).into_owned())
}

fn framing(status: u16, headers: &[(String, String)]) -> Framing {
    let length = find(headers, "content-length").and_then(|length| length.parse().ok());
    match (length, find(headers, "transfer-encoding")) {
        _ if matches!(status, 100..200 | 204 | 304) => Framing::Length(0),
        (_, Some(_)) => Framing::Chunked(Some(0)),
        (Some(length), None) => Framing::Length(length),
        (None, None) => Framing::UntilEnd,
    }
}

/// Appends the next piece of a body and returns its length; 0 at the end.
fn read_some(reader: &mut impl BufRead, framing: &mut Framing, body: &mut Vec<u8>) -> io::Result<usize> {
    if let Framing::Chunked(Some(left @ 0)) = framing {
        let line = read_line(reader)?;
        *left = u64::from_str_radix(line.trim(), 16).map_err(|_| malformed(&line))?;
        if *left == 0 {
            while !read_line(reader)?.is_empty() {}
            *framing = Framing::Chunked(None);
        }
    }
    let most = match framing {
        Framing::Length(0) | Framing::Chunked(None) => return Ok(0),
        Framing::Length(left) | Framing::Chunked(Some(left)) => usize::try_from(*left).unwrap_or(usize::MAX),
        Framing::UntilEnd => usize::MAX,
    };
    let buffer = reader.fill_buf()?;
    let length = buffer.len().min(most);
    body.extend_from_slice(&buffer[..length]);
    reader.consume(length);
    let read = u64::try_from(length).unwrap_or(u64::MAX);
    match framing {
        Framing::UntilEnd | Framing::Chunked(None) => Ok(length),
        _ if length == 0 => Err(io::ErrorKind::UnexpectedEof.into()),
        Framing::Length(left) => {
            *left -= read;
            Ok(length)
        }
        Framing::Chunked(Some(left)) => {
            *left -= read;
            if *left == 0 && !read_line(reader)?.is_empty() {
                return Err(malformed("a chunk without its end"));
            }
            Ok(length)
        }
    }
}
