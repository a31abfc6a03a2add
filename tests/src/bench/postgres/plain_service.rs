//! The plain way behind HTTP: a service that runs one statement per request and responds.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use metering_core::ApiKey;

use super::accounts::Accounts;
use super::measured::Measured;
use super::nodes::{KeyedRequests, keyed_requests};
use super::plain::{Session, connect};
use crate::bench::Failure;
use crate::bench::background::Background;

/// As long as the sample upstream's response.
const BODY: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"block":20000000,"trades":[],"note":"an answer as long as the other"}}"#;

/// A running service with as many threads as the machine has cores, like the real server.
pub(super) struct PlainService {
    address: SocketAddr,
    keyed_requests: KeyedRequests,
    _runtime: Background,
}

struct Shared {
    sessions: Vec<Session>,
    next: AtomicUsize,
}

impl PlainService {
    /// Opens a database connection for each client.
    pub(super) fn start(accounts: &Accounts, clients: usize) -> Result<Self, Failure> {
        let runtime = Background::start()?;
        let url = accounts.url();
        let (started, address) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            let bound = async {
                let shared = Shared { sessions: connect(&url, clients).await?, next: AtomicUsize::new(0) };
                let routes = Router::new().fallback(any(charge)).with_state(Arc::new(shared));
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
                Ok::<_, Failure>((listener.local_addr()?, listener, routes))
            };
            match bound.await {
                Ok((address, listener, routes)) => {
                    let _ = started.send(Ok(address));
                    // Serves until the runtime ends.
                    let _ = axum::serve(listener, routes).await;
                }
                Err(failure) => drop(started.send(Err(failure))),
            }
        });
        Ok(Self { address: address.recv()??, keyed_requests: keyed_requests(accounts), _runtime: runtime })
    }

    pub(super) fn run(&self, accounts: &Accounts, connections: usize, time: Duration) -> Result<Measured, Failure> {
        self.keyed_requests.run(accounts, &[self.address], connections, time)
    }
}

async fn charge(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let Some(key) = bearer.and_then(|key| ApiKey::parse(key).ok()) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let session = &shared.sessions[shared.next.fetch_add(1, Ordering::Relaxed) % shared.sessions.len()];
    match session.charge(&key.hash()).await {
        Ok(()) => ([(header::CONTENT_TYPE, "application/json")], BODY).into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
