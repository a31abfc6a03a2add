//! A loopback server that is both the service and the chain's node. It can be told to give another response, or to
//! hang before or after it handles a request.

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
const PATIENCE: Duration = Duration::from_secs(30);

/// What happens to one request, for a path of the service or a method of the chain.
#[derive(Debug)]
pub(crate) enum Turn {
    /// It gets this response, and nothing is done.
    Answer(u16, Value),
    /// Nothing is done, and no response comes.
    HangBefore,
    /// It is done, and no response comes.
    HangAfter,
    /// A directory is created, then it is done as usual.
    Folder(PathBuf),
}

/// What is behind the address.
pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) node: Node,
    /// The requests: `POST /path`, or the method of a call.
    pub(crate) asked: Vec<String>,
    turns: VecDeque<(String, Turn)>,
    hung: Sender<()>,
}

/// The server. It ends with the process.
pub(crate) struct StandIn {
    address: SocketAddr,
    world: Arc<Mutex<World>>,
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
        let world = World { service, node: Node::new(), asked: Vec::new(), turns: VecDeque::new(), hung: tell };
        let world = Arc::new(Mutex::new(world));
        let shared = Arc::clone(&world);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let world = Arc::clone(&shared);
                // Ignore clients that were killed.
                std::thread::spawn(move || connection.map(|connection| attend(connection, &world)));
            }
        });
        Self { address, world, hung }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn rpc_url(&self) -> String {
        format!("http://{}/chain", self.address)
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// What happens to the next request for `what`, once. Calls queue up.
    pub(crate) fn next(&self, what: &str, turn: Turn) {
        self.world().turns.push_back((what.to_owned(), turn));
    }

    /// Waits until a request hangs.
    #[track_caller]
    pub(crate) fn wait_until_it_hangs(&self) {
        self.hung.recv_timeout(PATIENCE).expect("a request hangs");
    }

    /// How many times `what` was requested.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.world().asked.iter().filter(|asked| *asked == what).count()
    }
}

impl World {
    /// What happens to a request for all of these.
    fn turn(&mut self, asked: &[String]) -> Option<Turn> {
        self.asked.extend_from_slice(asked);
        let place = self.turns.iter().position(|(what, _)| asked.contains(what))?;
        self.turns.remove(place).map(|(_, turn)| turn)
    }

    fn answer(&mut self, request: &Request) -> (u16, Value) {
        if request.path == "/chain" {
            return (200, self.node.answers(&request.body));
        }
        self.service.answer(request, &self.node)
    }
}

fn attend(connection: TcpStream, world: &Mutex<World>) {
    let Some(request) = read(&connection) else { return };
    let mut open = world.lock().unwrap();
    let turn = open.turn(&asked(&request));
    let (status, body) = match turn {
        Some(Turn::Answer(status, body)) => (status, body),
        Some(Turn::HangBefore) => return hang(connection, &open.hung.clone(), open),
        Some(Turn::HangAfter) => {
            let _ = open.answer(&request);
            return hang(connection, &open.hung.clone(), open);
        }
        Some(Turn::Folder(path)) => {
            // Replaces the profile, which may already name the service.
            let _ = std::fs::remove_file(&path);
            std::fs::create_dir_all(path).unwrap();
            open.answer(&request)
        }
        None => open.answer(&request),
    };
    drop(open);
    let body = body.to_string();
    let head = format!("HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\nconnection: close");
    let _ = write!(&connection, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
}

fn hang(mut connection: TcpStream, hung: &Sender<()>, open: MutexGuard<'_, World>) {
    drop(open);
    let _ = hung.send(());
    // Until the client is gone.
    let _ = connection.read(&mut [0]);
}

fn asked(request: &Request) -> Vec<String> {
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
