//! A proxy between a client and a node, which forwards everything until a test injects a fault.
//!
//! It understands single requests and batches (JSON-RPC 2.0, section 6) at any path, so a test can put a secret into
//! its URL. It counts requests, and faults can be switched while it runs.

pub mod fault;
mod inject;
mod lag;

use std::collections::BTreeMap;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use self::fault::{Fault, Garbage};
use self::inject::calls;
use super::Chain;
use crate::client::Client;

/// How long to wait for an expected event.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running proxy. Dropping it ends it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Shared {
    node: Client,
    state: Mutex<ProxyState>,
    changed: Condvar,
}

#[derive(Debug)]
struct ProxyState {
    fault: Fault,
    requests: u64,
    counts: BTreeMap<String, u64>,
}

impl Proxy {
    /// Starts one in front of a chain's node. It forwards everything.
    #[track_caller]
    #[must_use]
    pub fn start(chain: &Chain) -> Self {
        Self::to(chain.address())
    }

    /// Starts one in front of any node. It forwards everything.
    #[track_caller]
    #[must_use]
    pub fn to(node: SocketAddr) -> Self {
        let state = ProxyState { fault: Fault::PassThrough, requests: 0, counts: BTreeMap::new() };
        let shared = Arc::new(Shared { node: Client::new(node), state: Mutex::new(state), changed: Condvar::new() });
        let routes = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime starts");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { address, shared, runtime: Some(runtime) }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its RPC URL; any path may be added.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Applies this fault from the next request on.
    pub fn set(&self, fault: Fault) {
        self.shared.state().fault = fault;
    }

    /// How many HTTP requests came; a batch counts once.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.shared.state().requests
    }

    /// How often this method was called; each call of a batch counts.
    #[must_use]
    pub fn count(&self, method: &str) -> u64 {
        self.shared.state().counts.get(method).copied().unwrap_or(0)
    }

    /// Resets the counts to zero.
    pub fn reset_counts(&self) {
        let mut state = self.shared.state();
        state.requests = 0;
        state.counts.clear();
    }

    /// Waits until this method was called `count` times.
    #[track_caller]
    pub fn wait_for(&self, method: &str, count: u64) {
        let too_few = |state: &mut ProxyState| state.counts.get(method).copied().unwrap_or(0) < count;
        let waited = self.shared.changed.wait_timeout_while(self.shared.state(), TIMEOUT, too_few);
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "{method} was not called {count} times: {:?}", state.counts);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Does not wait for a slow node.
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, ProxyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, and returns the fault to apply to it.
    fn admit(&self, request: &Value) -> Fault {
        let mut state = self.state();
        state.requests += 1;
        for call in calls(request) {
            let method = call["method"].as_str().unwrap_or_default().to_owned();
            *state.counts.entry(method).or_default() += 1;
        }
        let fault = state.fault.next();
        drop(state);
        self.changed.notify_all();
        fault
    }
}

async fn serve(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return (StatusCode::BAD_REQUEST, "not JSON").into_response();
    };
    match shared.admit(&request) {
        Fault::Timeout => pending().await,
        Fault::HttpError(status) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, format!("{status}")).into_response()
        }
        Fault::Garbage(Garbage::Empty) => Json(Vec::new()).into_response(),
        Fault::Garbage(Garbage::Text) => Json(b"upstream connect error".to_vec()).into_response(),
        Fault::Garbage(Garbage::Html) => {
            let page = "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body></body></html>";
            ([("content-type", "text/html")], page).into_response()
        }
        fault => forward_with_fault(shared, request, fault).await,
    }
}

/// Forwards the request to the node, and applies the fault to its response.
async fn forward_with_fault(shared: Arc<Shared>, request: Value, fault: Fault) -> Response {
    let result = tokio::task::spawn_blocking(move || inject::forward(&shared.node, &request, &fault)).await;
    match result {
        Ok(Ok(body)) => Json(body).into_response(),
        Ok(Err(error)) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// A response that claims to be JSON, and may not be.
struct Json(Vec<u8>);

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        ([("content-type", "application/json")], self.0).into_response()
    }
}
