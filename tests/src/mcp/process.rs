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
const PATIENCE: Duration = Duration::from_secs(90);

/// A running client process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Mutex<Child>,
    input: Mutex<Input>,
    waiting: Waiting,
}

#[derive(Debug)]
struct Input {
    pipe: ChildStdin,
    questions: u64,
}

/// The senders for pending responses, by request id; `None` once the process's output has ended.
type Waiting = Arc<Mutex<Option<HashMap<u64, Sender<Value>>>>>;

/// A response that has not arrived yet.
#[derive(Debug)]
#[must_use = "the client's response must be checked"]
pub struct Pending {
    question: String,
    answer: Receiver<Value>,
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
        // Anything it writes to standard error is a bug in the script, so show it at once.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
        let pipe = child.stdin.take().expect("its input is piped");
        let output = child.stdout.take().expect("its output is piped");
        let waiting = Waiting::new(Mutex::new(Some(HashMap::new())));
        let answered = Arc::clone(&waiting);
        std::thread::spawn(move || pass_on(output, &answered));
        Self { child: Mutex::new(child), input: Mutex::new(Input { pipe, questions: 0 }), waiting }
    }

    /// Sends a request, and does not wait for the response.
    #[track_caller]
    pub(super) fn begin(&self, method: &str, params: &Value) -> Pending {
        let mut input = lock(&self.input);
        input.questions += 1;
        let id = input.questions;
        let (tell, answer) = channel();
        let question = json!({ "id": id, "method": method, "params": params }).to_string();
        match lock(&self.waiting).as_mut() {
            Some(waiting) => waiting.insert(id, tell),
            None => panic!("the client's process had already ended: {method}"),
        };
        writeln!(input.pipe, "{question}").expect("the client's process reads requests");
        Pending { question: method.to_owned(), answer }
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
    ///
    /// # Panics
    /// If the process ends, or does not respond in time.
    #[track_caller]
    pub fn wait(self) -> Result<Value, Failure> {
        let answer = self.answer.recv_timeout(PATIENCE);
        let mut answer =
            answer.unwrap_or_else(|error| panic!("the client did not respond to {}: {error}", self.question));
        match answer["error"].as_object() {
            Some(error) => {
                let message = error["message"].as_str().unwrap_or_default().to_owned();
                Err(Failure { message, code: error["code"].as_i64() })
            }
            None => Ok(answer["result"].take()),
        }
    }
}

fn pass_on(output: ChildStdout, waiting: &Waiting) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"));
        let asked = lock(waiting).as_mut().and_then(|waiting| waiting.remove(&answer["id"].as_u64()?));
        if let Some(asked) = asked {
            let _ = asked.send(answer);
        }
    }
    // Dropping the senders ends every pending wait.
    *lock(waiting) = None;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
