//! HTTP responses parsed by hand, so that nothing is hidden from the tests.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::net::TcpStream;

use serde_json::Value;
use serde_json::value::RawValue;

/// A complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The headers in order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A response whose body is still arriving.
#[derive(Debug)]
pub struct OpenResponse {
    /// The status.
    pub status: u16,
    /// The headers in order, with names in lower case.
    pub headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    framing: Framing,
}

#[derive(Debug)]
enum Framing {
    Length(u64),
    /// The bytes left in the current chunk; `None` after the last.
    Chunked(Option<u64>),
    UntilEnd,
}

impl Response {
    /// The value of the first header with this lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body as JSON.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// A member of the JSON object in the body, as its raw text, so that numbers are not reformatted.
    #[track_caller]
    #[must_use]
    pub fn member(&self, name: &str) -> String {
        let members: BTreeMap<String, Box<RawValue>> =
            serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()));
        members.get(name).unwrap_or_else(|| panic!("no {name} in {}", self.text())).get().to_owned()
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The error code in the body, or an empty string.
    #[must_use]
    pub fn error(&self) -> String {
        self.problem()["error"].as_str().unwrap_or_default().to_owned()
    }

    /// The error in the body: all of it, or the data of an error of JSON-RPC. Null if the body is not JSON.
    #[must_use]
    pub fn problem(&self) -> Value {
        let mut body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        if body["error"]["data"].is_object() { body["error"]["data"].take() } else { body }
    }

    /// Asserts the status.
    #[track_caller]
    #[must_use]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} {:?}", self.text(), self.headers);
        self
    }

    /// Parses a complete response.
    ///
    /// # Errors
    /// If the bytes are not a complete response.
    pub fn parse(bytes: &[u8]) -> io::Result<Self> {
        let mut reader = bytes;
        let (status, headers) = read_head(&mut reader)?;
        let mut framing = framing(status, &headers);
        let mut body = Vec::new();
        while read_some(&mut reader, &mut framing, &mut body)? > 0 {}
        Ok(Self { status, headers, body })
    }
}

impl OpenResponse {
    pub(crate) fn read_from(stream: TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader)?;
        let framing = framing(status, &headers);
        Ok(Self { status, headers, reader, framing })
    }

    /// The value of the first header with this lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The next piece of the body; empty at its end.
    ///
    /// # Errors
    /// If the connection breaks off, or nothing arrives in time.
    pub fn piece(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = Vec::new();
        read_some(&mut self.reader, &mut self.framing, &mut piece)?;
        Ok(piece)
    }

    /// Reads until the body contains `text`, and returns everything read.
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
    /// If the connection breaks off before the body's proper end.
    pub fn finish(mut self) -> io::Result<Response> {
        let mut body = Vec::new();
        while read_some(&mut self.reader, &mut self.framing, &mut body)? > 0 {}
        Ok(Response { status: self.status, headers: self.headers, body })
    }
}

fn find<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not an HTTP response: {what:?}"))
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

/// Appends the next piece of a body, and returns its length; 0 at the end.
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
                return Err(malformed("a chunk without its line end"));
            }
            Ok(length)
        }
    }
}
