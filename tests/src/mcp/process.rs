//! A client's process: `tests/mcp/client.py` or `client.mjs`, which speaks JSON lines and handles many requests at a
//! time.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a response may take, including the start of an interpreter on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(90);

/// A running client process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Mutex<Child>,
    input: Mutex<Input>,
    senders: ResponseSenders,
}

#[derive(Debug)]
struct Input {
    pipe: ChildStdin,
    requests: u64,
}

/// The senders for pending responses, by request id; `None` once the process's output has ended.
type ResponseSenders = Arc<Mutex<Option<HashMap<u64, Sender<Value>>>>>;

/// A response that has not arrived yet.
#[derive(Debug)]
#[must_use = "the client's response must be checked"]
pub struct Pending {
    request: String,
    response: Receiver<Value>,
}

/// An error from the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The client's message.
    pub message: String,
    /// The JSON-RPC or HTTP error code, if the SDK provides one.
    pub code: Option<i64>,
}

impl Process {
    #[track_caller]
    pub(super) fn start(mut command: Command) -> Self {
        // Anything it writes to standard error is a bug in the script, so show it immediately.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
        let pipe = child.stdin.take().expect("its input is piped");
        let output = child.stdout.take().expect("its output is piped");
        let senders = ResponseSenders::new(Mutex::new(Some(HashMap::new())));
        let for_reader = Arc::clone(&senders);
        std::thread::spawn(move || deliver_responses(output, &for_reader));
        Self { child: Mutex::new(child), input: Mutex::new(Input { pipe, requests: 0 }), senders }
    }

    /// Sends a request, and does not wait for the response.
    #[track_caller]
    pub(super) fn begin(&self, method: &str, params: &Value) -> Pending {
        let mut input = lock(&self.input);
        input.requests += 1;
        let id = input.requests;
        let (sender, response) = channel();
        let request = json!({ "id": id, "method": method, "params": params }).to_string();
        match lock(&self.senders).as_mut() {
            Some(senders) => senders.insert(id, sender),
            None => panic!("the client's process had already ended: {method}"),
        };
        writeln!(input.pipe, "{request}").expect("the client's process reads requests");
        Pending { request: method.to_owned(), response }
    }

    /// Kills it immediately.
    pub(super) fn kill(&self) {
        let mut child = lock(&self.child);
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Pending {
    /// The response, or the client's error.
    ///
    /// # Errors
    /// If the client reports an error.
    #[track_caller]
    pub fn wait(self) -> Result<Value, Failure> {
        let response = self.response.recv_timeout(TIMEOUT);
        let mut response =
            response.unwrap_or_else(|error| panic!("the client did not respond to {}: {error}", self.request));
        match response["error"].as_object() {
            Some(error) => {
                let message = error["message"].as_str().unwrap_or_default().to_owned();
                Err(Failure { message, code: error["code"].as_i64() })
            }
            None => Ok(response["result"].take()),
        }
    }
}

fn deliver_responses(output: ChildStdout, senders: &ResponseSenders) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let response: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"));
        let sender = lock(senders).as_mut().and_then(|senders| senders.remove(&response["id"].as_u64()?));
        if let Some(sender) = sender {
            let _ = sender.send(response);
        }
    }
    // Dropping the senders ends every pending wait.
    *lock(senders) = None;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
