//! Webhook receivers for tests: `tests/webhooks/receiver.py` and `receiver.mjs`, which verify every request with the
//! official libraries of Standard Webhooks.

mod received;

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver as Lines, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

pub use self::received::Received;

/// Set by `./test.sh` on a machine without Node.js or Python. The libraries are in the environments of `tests/clients`.
const SKIP: &str = "TESTS_SKIP_CLIENTS";

/// How long a request or a receiver's start may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The library that a receiver verifies with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// `standardwebhooks` from PyPI.
    Python,
    /// `standardwebhooks` from npm, on Node.js.
    JavaScript,
}

/// PEM files of a server's certificate.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its private key, unencrypted.
    pub key: PathBuf,
}

/// How a receiver responds to one request.
#[derive(Debug, Clone)]
pub struct Reply(Value);

/// A running receiver on 127.0.0.1. Dropping it ends it.
///
/// It verifies requests with the secrets of [`Receiver::set_secrets`], of which it has none at first. It responds with
/// 204 to a verified request and with 400 to others, unless [`Receiver::respond`] says otherwise.
#[derive(Debug)]
pub struct Receiver {
    child: Child,
    input: ChildStdin,
    port: u16,
    scheme: &'static str,
    requests: Lines<Value>,
    /// One for each line of input that has taken effect.
    applied: Lines<Value>,
}

impl Library {
    /// Both libraries.
    pub const ALL: [Self; 2] = [Self::Python, Self::JavaScript];

    #[track_caller]
    fn command(self) -> Command {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (interpreter, script) = match self {
            Self::Python => (crate::venv::program("clients-venv", "python"), "receiver.py"),
            Self::JavaScript => {
                let library = tests.join("clients/node_modules/standardwebhooks");
                let missing = "is missing: run `npm ci` in tests/clients, or ./test.sh";
                assert!(library.is_dir(), "{} {missing}", library.display());
                ("node".into(), "receiver.mjs")
            }
        };
        let mut command = Command::new(interpreter);
        command.arg(tests.join("webhooks").join(script));
        command
    }
}

impl Reply {
    /// This status, without a body.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self(status.into())
    }

    /// This status with one header, such as `Retry-After`.
    #[must_use]
    pub fn with_header(status: u16, name: &str, value: &str) -> Self {
        Self(json!({"status": status, "headers": {name: value}}))
    }

    /// A redirect (302) to this URL.
    #[must_use]
    pub fn redirect(url: &str) -> Self {
        Self::with_header(302, "Location", url)
    }

    /// None: the connection stays open until the client closes it.
    #[must_use]
    pub fn hang() -> Self {
        Self("hang".into())
    }
}

impl Receiver {
    /// Starts one with HTTPS, or with plain HTTP if it has no certificate; `None` if these tests are disabled.
    #[track_caller]
    #[must_use]
    pub fn start(library: Library, identity: Option<&Identity>) -> Option<Self> {
        if crate::skipped::by(SKIP) {
            return None;
        }
        let options = identity
            .map_or_else(|| json!({}), |identity| json!({"certificate": identity.certificate, "key": identity.key}));
        let mut command = library.command();
        // The end of its input ends it, however the test's process ends.
        command.arg(options.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
        let input = child.stdin.take().expect("its input is piped");
        let output = BufReader::new(child.stdout.take().expect("its output is piped"));
        let ((send_request, requests), (send_applied, applied)) = (channel(), channel());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let line: Value = serde_json::from_str(&line).expect("the receiver prints JSON");
                let sender = if line.get("path").is_some() { &send_request } else { &send_applied };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let first = applied.recv_timeout(TIMEOUT).expect("the receiver reports its port");
        let port = first["port"].as_u64().and_then(|port| port.try_into().ok()).expect("it is a port");
        let scheme = if identity.is_some() { "https" } else { "http" };
        Some(Self { child, input, port, scheme, requests, applied })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Its URL with this host (`localhost` or `127.0.0.1`) and path.
    #[must_use]
    pub fn url(&self, host: &str, path: &str) -> String {
        format!("{}://{host}:{}{path}", self.scheme, self.port)
    }

    /// From now on, a request is verified if it is signed with any of these secrets (`whsec_...`).
    #[track_caller]
    pub fn set_secrets(&mut self, secrets: &[&str]) {
        self.control(&json!({"secrets": secrets}));
    }

    /// Replaces the responses to the next requests, in order. The requests after these get the usual ones.
    #[track_caller]
    pub fn respond(&mut self, replies: &[Reply]) {
        let replies: Vec<&Value> = replies.iter().map(|reply| &reply.0).collect();
        self.control(&json!({"respond": replies}));
    }

    /// Returns when the line has taken effect.
    #[track_caller]
    fn control(&mut self, line: &Value) {
        writeln!(self.input, "{line}").expect("the receiver reads its input");
        let _ = self.applied.recv_timeout(TIMEOUT).expect("the receiver applies its input");
    }

    /// The next request. It is reported when it has arrived, which is before it gets a response.
    #[track_caller]
    #[must_use]
    pub fn next(&self) -> Received {
        Received::new(self.requests.recv_timeout(TIMEOUT).expect("the receiver gets a request"))
    }

    /// Asserts that no request comes for a while.
    #[track_caller]
    pub fn gets_nothing(&self, wait: Duration) {
        let got = self.requests.recv_timeout(wait);
        assert_eq!(got, Err(RecvTimeoutError::Timeout), "no request was expected");
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
