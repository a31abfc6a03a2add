use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A run of the load generator.
#[derive(Clone)]
pub struct LoadPlan {
    /// Where the server listens, or each of several servers that share the work. Connections are assigned to them in
    /// turn.
    pub addresses: Vec<SocketAddr>,
    /// How many connections send at once.
    pub connections: usize,
    /// When to stop.
    pub stop: Stop,
    /// The requests, sent in this order across all connections; after the last one, the first is next.
    pub requests: Arc<[Vec<u8>]>,
    /// The index in that list to start at.
    pub first: usize,
    /// How long a request, or opening a connection, may take. After that the connection counts as failed.
    pub timeout: Duration,
}

/// When a run stops. It still waits for requests that are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// After this much time.
    After(Duration),
    /// After this many requests, including failed ones.
    AfterRequests(u64),
}

impl LoadPlan {
    /// The default timeout.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    /// A plan with the default timeout.
    #[must_use]
    pub fn new(address: SocketAddr, connections: usize, stop: Stop, requests: impl Into<Arc<[Vec<u8>]>>) -> Self {
        Self {
            addresses: vec![address],
            connections,
            stop,
            requests: requests.into(),
            first: 0,
            timeout: Self::DEFAULT_TIMEOUT,
        }
    }
}

impl fmt::Debug for LoadPlan {
    /// Shows only the number of requests: they contain keys, and may be many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadPlan")
            .field("addresses", &self.addresses)
            .field("connections", &self.connections)
            .field("stop", &self.stop)
            .field("requests", &self.requests.len())
            .field("first", &self.first)
            .field("time_out", &self.timeout)
            .finish()
    }
}
