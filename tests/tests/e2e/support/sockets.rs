//! A service behind the gateway that speaks WebSocket, and a client for it: stock ones, without any code for metering.

use std::ffi::OsString;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use metering_tests::client::connect;
use metering_tests::listener;
use metering_tests::site::Site;
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tungstenite::protocol::CloseFrame;
use tungstenite::{Error, HandshakeError, Message, WebSocket};

/// How long to wait for what is expected.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The service's output at `/live/flood`: this many messages of this many bytes.
pub(crate) const FLOOD: (usize, usize) = (1_024, 64 * 1024);

/// A client's end of a connection.
pub(crate) type Socket = WebSocket<TcpStream>;

/// A running service. It echoes messages; `/live/refused` has no connections, and `/live/flood` sends many messages.
/// Other requests get a 200.
pub(crate) struct SocketUpstream {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    handshakes: Vec<HeaderMap>,
    open: usize,
    flooded: usize,
}

impl SocketUpstream {
    pub(crate) fn start() -> Self {
        let state = Arc::<(Mutex<State>, Condvar)>::default();
        let shared = Arc::clone(&state);
        Self { address: listener::serve(move |stream| serve(stream, &shared)), state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The headers of every handshake that reached it.
    pub(crate) fn handshakes(&self) -> Vec<HeaderMap> {
        self.state.0.lock().unwrap().handshakes.clone()
    }

    /// How many messages it has sent at `/live/flood`.
    pub(crate) fn flooded(&self) -> usize {
        self.state.0.lock().unwrap().flooded
    }

    /// Waits until it has `count` open connections.
    #[track_caller]
    pub(crate) fn wait_for_open(&self, count: usize) {
        let (state, changed) = &*self.state;
        let waited = changed.wait_timeout_while(state.lock().unwrap(), TIMEOUT, |state| state.open != count).unwrap();
        assert!(!waited.1.timed_out(), "{} connections are open, not {count}", waited.0.open);
    }
}

fn serve(mut stream: TcpStream, state: &(Mutex<State>, Condvar)) {
    let mut start = [0; 10];
    while stream.peek(&mut start).is_ok_and(|count| count > 0 && count < start.len()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    if !start.starts_with(b"GET /live") {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        let _ = metering_tests::client::read_all(&mut stream);
        return;
    }
    let mut path = String::new();
    #[expect(clippy::result_large_err, reason = "the library's type of a callback")]
    let respond = |request: &Request, mut response: Response| {
        state.0.lock().unwrap().handshakes.push(request.headers().clone());
        path = request.uri().path().to_owned();
        if path == "/live/refused" {
            let mut refusal = ErrorResponse::new(Some("not here".to_owned()));
            *refusal.status_mut() = StatusCode::FORBIDDEN;
            return Err(refusal);
        }
        let offered = request.headers().get("sec-websocket-protocol").and_then(|offered| offered.to_str().ok());
        if let Some(first) = offered.and_then(|offered| offered.split(',').next()) {
            response.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_str(first.trim()).unwrap());
        }
        Ok(response)
    };
    let Ok(mut socket) = tungstenite::accept_hdr(stream, respond) else { return };
    let change = |by: isize| {
        let mut state_now = state.0.lock().unwrap();
        state_now.open = state_now.open.checked_add_signed(by).unwrap();
        state.1.notify_all();
    };
    change(1);
    if path == "/live/flood" {
        let (count, bytes) = FLOOD;
        let _ = (0..count).try_for_each(|_| {
            socket.send(Message::binary(vec![b'x'; bytes]))?;
            state.0.lock().unwrap().flooded += 1;
            Ok::<_, Error>(())
        });
    }
    while let Ok(message) = socket.read() {
        if (message.is_text() || message.is_binary()) && socket.send(message).is_err() {
            break;
        }
    }
    drop(socket);
    change(-1);
}

/// The price of a connection: a hundredth of a credit.
const SESSION: &str = r#""billing_modifier": {"type": "stream_session", "credits_per_connection": 0.01}"#;

/// Writes a catalogue of the service's routes, and returns the server's flags for it.
pub(crate) fn catalogue(site: &Site) -> [OsString; 2] {
    let route = |path: &str, fields: &str| format!(r#"{{"path": "{path}", "method": "GET", {fields}}}"#);
    let socket = format!(r#""metered": true, "websocket": true, {SESSION}"#);
    let routes = [
        route("/live", &socket),
        route("/live/refused", &socket),
        route("/live/flood", &socket),
        route("/live/free", r#""metered": false, "websocket": true"#),
        route("/plain", r#""metered": true, "price": "0.01""#),
    ];
    let text = format!(r#"{{"market": "TEST", "version": 1, "endpoints": [{}]}}"#, routes.join(", "));
    ["--catalogue".into(), site.write("catalogue.json", &text).into()]
}

/// Opens a connection through the server, with these headers.
///
/// # Errors
/// The status of the response, if the server did not switch.
pub(crate) fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Socket, u16> {
    open_with_head(address, path, headers).map(|(socket, _)| socket)
}

/// Like [`open`]; also returns the headers of the response.
///
/// # Errors
/// Same as [`open`].
pub(crate) fn open_with_head(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<(Socket, HeaderMap), u16> {
    let mut request = format!("ws://{}{path}", address).into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    match tungstenite::client(request, connect(address).unwrap()) {
        Ok((socket, response)) => {
            assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
            Ok((socket, response.headers().clone()))
        }
        Err(HandshakeError::Failure(Error::Http(response))) => Err(response.status().as_u16()),
        Err(error) => panic!("no response: {error}"),
    }
}

/// Opens a WebSocket connection with a key.
#[track_caller]
pub(crate) fn open_with_key(address: SocketAddr, path: &str, api_key: &str) -> Socket {
    let opened = open(address, path, &[("authorization", &format!("Bearer {api_key}"))]);
    opened.unwrap_or_else(|status| panic!("{path}: {status}"))
}

/// Sends a message and expects it back.
#[track_caller]
pub(crate) fn expect_echo(socket: &mut Socket, text: &str) {
    socket.send(Message::text(text)).unwrap();
    assert_eq!(socket.read().unwrap(), Message::text(text));
}

/// Waits for the server's Close frame: its code and reason.
#[track_caller]
pub(crate) fn expect_close(socket: &mut Socket) -> (u16, String) {
    loop {
        match socket.read() {
            Ok(Message::Close(Some(CloseFrame { code, reason }))) => return (code.into(), reason.to_string()),
            Ok(_) => {}
            Err(error) => panic!("the connection ended without a Close frame: {error}"),
        }
    }
}
