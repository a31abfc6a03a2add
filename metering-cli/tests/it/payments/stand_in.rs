//! A loopback server that is both the service and the chain's node. It can be made to send another response, or to hang
//! before or after it handles a request.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;

use crate::node::Node;
use crate::service::Service;

/// How long a test waits for the program to get somewhere.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What happens to one request, for a path of the service or a method of the chain.
#[derive(Debug)]
pub(crate) enum Step {
    /// It gets this response, and nothing is done.
    Respond(u16, Value),
    /// Nothing is done, and no response comes.
    HangBefore,
    /// It is done, and no response comes.
    HangAfter,
    /// A directory is created, then it is done as usual.
    Folder(PathBuf),
}

/// What is behind the address.
pub(crate) struct State {
    pub(crate) service: Service,
    pub(crate) node: Node,
    /// The requests: `POST /path`, or the method of a call.
    pub(crate) requests: Vec<String>,
    steps: VecDeque<(String, Step)>,
    hung: Sender<()>,
}

/// The server. It ends with the process.
pub(crate) struct StandIn {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    hung: Receiver<()>,
}

/// A request, and the key it was sent with.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) key: Option<String>,
    pub(crate) body: Value,
}

impl StandIn {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, hung) = channel();
        let service = Service::at(&format!("http://{address}"));
        let state = State { service, node: Node::new(), requests: Vec::new(), steps: VecDeque::new(), hung: tell };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let state = Arc::clone(&shared);
                // Ignore clients that were killed.
                std::thread::spawn(move || connection.map(|connection| handle_connection(connection, &state)));
            }
        });
        Self { address, state, hung }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn rpc_url(&self) -> String {
        format!("http://{}/chain", self.address)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// What happens to the next request for `what`, once. Calls queue up.
    pub(crate) fn next(&self, what: &str, step: Step) {
        self.state().steps.push_back((what.to_owned(), step));
    }

    /// Waits until a request hangs.
    #[track_caller]
    pub(crate) fn wait_until_it_hangs(&self) {
        self.hung.recv_timeout(TIMEOUT).expect("a request hangs");
    }

    /// How many times `what` was requested.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.state().requests.iter().filter(|names| *names == what).count()
    }
}

impl State {
    /// What happens to a request for all of these.
    fn next_step(&mut self, names: &[String]) -> Option<Step> {
        self.requests.extend_from_slice(names);
        let position = self.steps.iter().position(|(what, _)| names.contains(what))?;
        self.steps.remove(position).map(|(_, step)| step)
    }

    fn respond(&mut self, request: &Request) -> (u16, Value) {
        if request.path == "/chain" {
            return (200, self.node.respond_batch(&request.body));
        }
        self.service.respond(request, &self.node)
    }
}

fn handle_connection(connection: TcpStream, state: &Mutex<State>) {
    let Some(request) = read(&connection) else { return };
    let mut open = state.lock().unwrap();
    let step = open.next_step(&names_of(&request));
    let (status, body) = match step {
        Some(Step::Respond(status, body)) => (status, body),
        Some(Step::HangBefore) => return hang(connection, &open.hung.clone(), open),
        Some(Step::HangAfter) => {
            let _ = open.respond(&request);
            return hang(connection, &open.hung.clone(), open);
        }
        Some(Step::Folder(path)) => {
            // Replaces the profile, which may already name the service.
            let _ = std::fs::remove_file(&path);
            std::fs::create_dir_all(path).unwrap();
            open.respond(&request)
        }
        None => open.respond(&request),
    };
    drop(open);
    let body = body.to_string();
    let head = format!("HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\nconnection: close");
    let _ = write!(&connection, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
}

fn hang(mut connection: TcpStream, hung: &Sender<()>, open: MutexGuard<'_, State>) {
    drop(open);
    let _ = hung.send(());
    // Until the client is gone.
    let _ = connection.read(&mut [0]);
}

fn names_of(request: &Request) -> Vec<String> {
    if request.path != "/chain" {
        return vec![format!("{} {}", request.method, request.path)];
    }
    let calls = request.body.as_array().unwrap();
    calls.iter().map(|call| call["method"].as_str().unwrap().to_owned()).collect()
}

/// Reads one request per connection (RFC 9112).
fn read(connection: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let (mut length, mut key) = (0, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => key = value.trim().strip_prefix("Bearer ").map(str::to_owned),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).ok()? };
    Some(Request { method, path, key, body })
}
