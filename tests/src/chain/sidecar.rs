//! The wallet's process, `tests/chain/wallet.mjs`, which speaks JSON lines.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::packages;

/// How long a response may take, including the start of Node.js on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running wallet process. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Sidecar {
    child: Child,
    pipes: Mutex<Pipes>,
}

#[derive(Debug)]
struct Pipes {
    input: ChildStdin,
    responses: Receiver<String>,
    requests: u64,
}

impl Sidecar {
    /// Starts it, and does not wait until it is ready.
    #[track_caller]
    pub(crate) fn start(node_url: &str, node_process: u32) -> Self {
        let mut command = Command::new("node");
        command.arg(packages::folder().join("wallet.mjs")).args([node_url, &node_process.to_string()]);
        // Anything it writes to standard error is a bug in the script, so show it at once.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("node (Node.js) can be run");
        let input = child.stdin.take().expect("its input is piped");
        let output = child.stdout.take().expect("its output is piped");
        let (sender, responses) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, pipes: Mutex::new(Pipes { input, responses, requests: 0 }) }
    }

    /// Sends a request, and returns its result or the wallet's error.
    #[track_caller]
    pub(crate) fn request(&self, method: &str, params: &Value) -> Result<Value, String> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        pipes.requests += 1;
        let id = pipes.requests;
        let request = json!({ "id": id, "method": method, "params": params });
        writeln!(pipes.input, "{request}").expect("the wallet process reads requests");
        loop {
            let line = pipes.responses.recv_timeout(TIMEOUT).expect("the wallet process responds");
            let mut response: Value = serde_json::from_str(&line).expect("the wallet process responds in JSON");
            // The response to an earlier request, whose caller gave up.
            if response["id"] != id {
                continue;
            }
            return match response["error"].as_str() {
                Some(error) => Err(error.to_owned()),
                None => Ok(response["result"].take()),
            };
        }
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::Instant;

    use super::*;
    use crate::chain::node::Node;

    #[test]
    fn wallet_stops_the_node_when_the_test_process_ends() {
        if packages::are_skipped() {
            return;
        }
        let node = Node::start(31_337, &[]);
        let mut sidecar = Sidecar::start(&node.url(), node.process_id());
        // Replacing the process closes its input, as the operating system does when a process is killed.
        let mut other = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
        sidecar.pipes.get_mut().unwrap().input = other.stdin.take().unwrap();
        assert!(other.wait().unwrap().success());
        assert!(sidecar.child.wait().unwrap().success());
        let started = Instant::now();
        while TcpStream::connect(node.address()).is_ok() {
            assert!(started.elapsed() < TIMEOUT, "the node still runs");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
