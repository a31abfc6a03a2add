//! What a run is to do.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A run of the load generator.
#[derive(Clone)]
pub struct LoadPlan {
    /// Where the server listens; of several that share the work, where each does. Connections are dealt out to them by
    /// turns.
    pub addresses: Vec<SocketAddr>,
    /// How many connections send at once.
    pub connections: usize,
    /// When to stop.
    pub stop: Stop,
    /// The requests, sent in this order over all connections together, and again from the first after the last.
    pub requests: Arc<[Vec<u8>]>,
    /// The place in that list to start at.
    pub first: usize,
    /// How long a request may take, and a connection to open; after that the connection is given up as failed.
    pub time_out: Duration,
}

/// When a run stops. Requests that were sent by then are still waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// After so much time.
    After(Duration),
    /// After so many requests, those that fail included.
    AfterRequests(u64),
}

impl LoadPlan {
    /// The usual time-out.
    pub const TIME_OUT: Duration = Duration::from_secs(10);

    /// A plan with the usual time-out.
    #[must_use]
    pub fn new(address: SocketAddr, connections: usize, stop: Stop, requests: impl Into<Arc<[Vec<u8>]>>) -> Self {
        Self {
            addresses: vec![address],
            connections,
            stop,
            requests: requests.into(),
            first: 0,
            time_out: Self::TIME_OUT,
        }
    }
}

impl fmt::Debug for LoadPlan {
    /// The number of requests in their place: they hold keys, and may be many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadPlan")
            .field("addresses", &self.addresses)
            .field("connections", &self.connections)
            .field("stop", &self.stop)
            .field("requests", &self.requests.len())
            .field("first", &self.first)
            .field("time_out", &self.time_out)
            .finish()
    }
}
