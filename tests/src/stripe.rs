//! A stand-in for Stripe: `tests/stripe/server.mjs` behaves as its API documents, and signs events with its own library.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::client::Client;

/// Set by `./test.sh` on a machine without Node.js. The library is in the environment of `tests/clients`.
const SKIP: &str = "TESTS_SKIP_CLIENTS";

/// The secret key that it accepts.
pub const KEY: &str = "sk_test_of_the_tests";

/// A running stand-in. Dropping it ends it.
#[derive(Debug)]
pub struct Stripe {
    child: Child,
    address: SocketAddr,
}

impl Stripe {
    /// Starts one; `None` if these tests are disabled.
    #[track_caller]
    #[must_use]
    pub fn start() -> Option<Self> {
        if crate::skipped::by(SKIP) {
            return None;
        }
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let library = tests.join("clients/node_modules/stripe");
        assert!(library.is_dir(), "{} is missing: run `npm ci` in tests/clients, or ./test.sh", library.display());
        let mut command = Command::new("node");
        // The end of its input ends it, however the test's process ends.
        command.arg(tests.join("stripe/server.mjs")).arg(KEY).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("node can be run");
        let mut port = String::new();
        let output = child.stdout.take().expect("its output is piped");
        BufReader::new(output).read_line(&mut port).expect("it prints its port");
        let port = port.trim().parse().unwrap_or_else(|_| panic!("it prints its port, not {port:?}"));
        Some(Self { child, address: SocketAddr::from(([127, 0, 0, 1], port)) })
    }

    /// The URL of its API.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Has something done that the service does not do: see `test` in `server.mjs`. Returns the object that an event has.
    #[track_caller]
    #[must_use]
    pub fn act(&self, action: &str, arguments: &Value) -> Value {
        Client::new(self.address).post(&format!("/test/{action}"), arguments).expect(200).json()
    }

    /// The signatures of an event now, as Stripe sends them.
    #[track_caller]
    #[must_use]
    pub fn sign(&self, payload: &str, secrets: &[&str]) -> String {
        let signed = self.act("sign", &json!({"payload": payload, "secrets": secrets}));
        signed["header"].as_str().expect("it is signed").to_owned()
    }
}

impl Drop for Stripe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
