//! A service behind the gateway that sends what the body of each request says, byte for byte.
//!
//! The body is `{"steps": [...]}`: a text is sent, a number is a pause in milliseconds, `null` waits for the test, and
//! `[text, count]` is sent that many times. The connection is closed after the last step.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use metering_tests::listener;
use serde_json::{Value, json};

/// How long to wait for an expected event.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running service.
pub(crate) struct Script {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    log: Mutex<Log>,
    changed: Condvar,
}

#[derive(Default)]
struct Log {
    /// The head of each request.
    heads: Vec<String>,
    released: bool,
}

impl Script {
    pub(crate) fn start() -> Self {
        let shared = Arc::<Shared>::default();
        let serving = Arc::clone(&shared);
        // A gateway that closes the connection ends the script.
        let address = listener::serve(move |stream| drop(serve(stream, &serving)));
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The head of the last request.
    pub(crate) fn last_head(&self) -> String {
        self.shared.log.lock().unwrap().heads.last().expect("a request arrived").to_ascii_lowercase()
    }

    /// How many requests arrived.
    pub(crate) fn requests(&self) -> usize {
        self.shared.log.lock().unwrap().heads.len()
    }

    /// Lets all scripts continue that wait for the test.
    pub(crate) fn release(&self) {
        self.shared.change(|log| log.released = true);
    }

    pub(crate) fn wait_for_requests(&self, count: usize) {
        self.shared.wait(|log| log.heads.len() >= count);
    }
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Log)) {
        change(&mut self.log.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait(&self, reached: impl Fn(&Log) -> bool) {
        let waited = self.changed.wait_timeout_while(self.log.lock().unwrap(), TIMEOUT, |log| !reached(log)).unwrap();
        assert!(!waited.1.timed_out(), "{} requests", waited.0.heads.len());
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let Some((head, body)) = listener::read_request(&stream)? else { return Ok(()) };
    shared.change(|log| log.heads.push(head));
    let body: Value = serde_json::from_slice(&body).unwrap();
    for step in body["steps"].as_array().unwrap() {
        match step {
            Value::Null => shared.wait(|log| log.released),
            Value::Number(millis) => std::thread::sleep(Duration::from_millis(millis.as_u64().unwrap())),
            Value::Array(repeated) => {
                for _ in 0..repeated[1].as_u64().unwrap() {
                    stream.write_all(repeated[0].as_str().unwrap().as_bytes())?;
                }
            }
            text => stream.write_all(text.as_str().unwrap().as_bytes())?,
        }
    }
    Ok(())
}

/// A complete response with a JSON body.
pub(crate) fn json_response(body: &str) -> Value {
    with_length("200 OK", "Content-Type: application/json\r\n", body)
}

/// A complete response with these headers.
pub(crate) fn with_length(status: &str, headers: &str, body: &str) -> Value {
    json!(format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()))
}

/// The head of an event stream.
pub(crate) fn events_head() -> Value {
    chunked("Content-Type: text/event-stream\r\n")
}

/// The head of a chunked response.
pub(crate) fn chunked(headers: &str) -> Value {
    json!(format!("HTTP/1.1 200 OK\r\n{headers}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"))
}

/// A chunk with one event.
pub(crate) fn event(data: &str) -> Value {
    chunk(&format!("data: {data}\n\n"))
}

pub(crate) fn chunk(data: &str) -> Value {
    json!(format!("{:x}\r\n{data}\r\n", data.len()))
}

/// The end of a chunked body, with these trailers.
pub(crate) fn last_chunk(trailers: &str) -> Value {
    json!(format!("0\r\n{trailers}\r\n"))
}
