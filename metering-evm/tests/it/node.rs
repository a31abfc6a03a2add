//! A fake node that serves a small chain over JSON-RPC, and fails on demand.

mod chain;
mod fault;
mod wallet_state;

use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) use chain::{Chain, Tx, address, block_hash, transfer_topic, word};
pub(crate) use fault::Fault;

/// A node on a free port. It stops when it is dropped.
pub(crate) struct Node {
    port: u16,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

/// A node's chain, the requests it received, and the faults it will simulate.
#[derive(Default)]
pub(crate) struct State {
    /// The chain that it serves.
    pub(crate) chain: Chain,
    /// Faults for the next requests, one each.
    pub(crate) faults: Vec<Fault>,
    /// The maximum number of calls per batch, and the fault for larger ones. A single call is not a batch.
    pub(crate) batch_max: Option<(usize, Fault)>,
    /// The fault for all requests after those.
    pub(crate) always: Option<Fault>,
    /// The methods of every batch received.
    pub(crate) requests: Vec<Vec<String>>,
    /// The path and query of every request.
    pub(crate) targets: Vec<String>,
    /// The parameters of all `eth_getLogs` and `eth_call` calls.
    pub(crate) parameters: Vec<Value>,
    /// Decides which calls it refuses.
    pub(crate) refuse: Option<Refuse>,
    /// Changes its results.
    pub(crate) tamper: Option<Tamper>,
}

/// The error code and message for a call, given its method and parameters; `None` to allow it.
pub(crate) type Refuse = Box<dyn FnMut(&str, &Value) -> Option<(i64, &'static str)> + Send>;

/// Changes the result of a method.
pub(crate) type Tamper = Box<dyn FnMut(&str, Value) -> Value + Send>;

impl Node {
    /// Starts a node that serves `chain`.
    pub(crate) async fn start(chain: Chain) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { chain, ..State::default() }));
        let shared = Arc::clone(&state);
        let handler = move |request: axum::extract::Request| respond(Arc::clone(&shared), request);
        let router = Router::new().fallback(handler);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, state, task }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its address, as errors name it.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Applies these faults to the next requests, one each.
    pub(crate) fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state().faults.extend(faults);
    }

    /// Applies this fault to every request.
    pub(crate) fn always(&self, fault: Fault) {
        self.state().always = Some(fault);
    }

    /// Refuses some calls.
    pub(crate) fn refuse(&self, refuse: impl FnMut(&str, &Value) -> Option<(i64, &'static str)> + Send + 'static) {
        self.state().refuse = Some(Box::new(refuse));
    }

    /// Changes results.
    pub(crate) fn tamper(&self, tamper: impl FnMut(&str, Value) -> Value + Send + 'static) {
        self.state().tamper = Some(Box::new(tamper));
    }

    /// Changes the results of a method.
    pub(crate) fn change(&self, method: &'static str, mut change: impl FnMut(&mut Value) + Send + 'static) {
        self.tamper(move |called, mut result| {
            if called == method {
                change(&mut result);
            }
            result
        });
    }

    /// Replaces the results of a method.
    pub(crate) fn set(&self, method: &'static str, result: Value) {
        self.change(method, move |honest| honest.clone_from(&result));
    }

    /// How many requests it has received.
    pub(crate) fn requests(&self) -> usize {
        self.state().requests.len()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn respond(state: Arc<Mutex<State>>, request: axum::extract::Request) -> Response {
    let target = request.uri().to_string();
    let body: Bytes = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
    let (calls, is_batch) = match serde_json::from_slice(&body).unwrap() {
        Value::Array(calls) => (calls, true),
        call => (vec![call], false),
    };
    let (fault, replies) = {
        let mut state = state.lock().unwrap();
        state.targets.push(target);
        state.requests.push(calls.iter().map(|call| call["method"].as_str().unwrap().to_owned()).collect());
        let too_many = state.batch_max.clone().filter(|(most, _)| is_batch && calls.len() > *most);
        let fault = match too_many {
            Some((_, fault)) => Some(fault),
            None if state.faults.is_empty() => state.always.clone(),
            None => Some(state.faults.remove(0)),
        };
        let replies: Vec<_> = calls.iter().map(|call| state.reply(call)).collect();
        (fault, replies)
    };
    match fault {
        None => fault::replied(replies, is_batch),
        Some(fault) => fault.response(replies, is_batch).await,
    }
}

impl State {
    fn reply(&mut self, call: &Value) -> Value {
        assert_eq!(call["jsonrpc"], "2.0");
        let method = call["method"].as_str().unwrap();
        if matches!(method, "eth_getLogs" | "eth_call") {
            self.parameters.push(call["params"].clone());
        }
        let refused = self.refuse.as_mut().and_then(|refuse| refuse(method, &call["params"]));
        let result = refused.map_or_else(|| self.chain.respond(method, &call["params"]), Err);
        match result {
            Ok(result) => {
                let result = match &mut self.tamper {
                    Some(tamper) => tamper(method, result),
                    None => result,
                };
                json!({ "jsonrpc": "2.0", "id": call["id"], "result": result })
            }
            Err((code, message)) => {
                json!({ "jsonrpc": "2.0", "id": call["id"], "error": { "code": code, "message": message } })
            }
        }
    }
}
