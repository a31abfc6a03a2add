//! Connection limits, in total and per client address, and which connections are closed to make room.
//!
//! If new connections had to wait at the limit, a few clients could lock everyone else out. So an unproductive one (it
//! waits for its client, or its client does not read the response) is closed for a new one: the oldest such connection,
//! brand-new ones excepted, of the address that has the most. A request that is being served is never cut to make room.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::access::limits::Network;
use crate::http::connection::Connection;
use crate::operations::metrics;

/// Sockets above the limit, for connections that are closing.
const CLOSING_MAX: usize = 64;
/// How many of the addresses with the most connections are searched for one to close.
const MAX_SEARCHED: usize = 16;
/// When to search again if nothing could be closed.
const RETRY: Duration = Duration::from_millis(100);
/// Refused connections are logged at most this often.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// The limits and all admitted connections.
#[derive(Debug)]
pub(super) struct Connections {
    max: usize,
    books: Mutex<Books>,
    freed: Notify,
}

/// The slot of an admitted connection, released on drop.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    connections: Arc<Connections>,
    id: u64,
    network: Option<Network>,
    pub(super) connection: Connection,
}

/// Why a connection is not admitted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// Its address is at the limit, and all its connections are busy.
    Address,
    /// The server is at the limit, and the address has the most connections.
    Server,
    /// The server is at the limit, and all connections are busy: wait for one to end.
    Later,
}

#[derive(Debug)]
struct Books {
    max: usize,
    max_per_address: usize,
    next: u64,
    /// Open sockets, including those being closed.
    sockets: usize,
    /// Connections that are not closing.
    total: usize,
    /// Connections by client address, oldest first. Those of trusted proxies count in `total` only.
    holders: HashMap<Network, BTreeMap<u64, Connection>>,
    by_count: BTreeSet<(usize, Network)>,
    warned: Option<Instant>,
}

impl Connections {
    pub(super) fn new(max: usize, max_per_address: usize) -> Self {
        let books = Books {
            max,
            max_per_address,
            next: 0,
            sockets: 0,
            total: 0,
            holders: HashMap::new(),
            by_count: BTreeSet::new(),
            warned: None,
        };
        Self { max, books: Mutex::new(books), freed: Notify::new() }
    }

    /// Waits until a file descriptor is free for one more socket.
    pub(super) async fn socket_free(&self) {
        loop {
            let freed = self.freed.notified();
            if self.lock().sockets < self.max + CLOSING_MAX {
                return;
            }
            freed.await;
        }
    }

    /// Waits for a slot for a connection from `peer`. Returns `None` when the connection must be closed immediately. A
    /// trusted proxy carries many clients, so it has no limit per address.
    pub(super) async fn admit(self: &Arc<Self>, peer: IpAddr, is_proxy: bool) -> Option<ConnectionPermit> {
        let network = (!is_proxy).then(|| Network::of(peer));
        loop {
            let freed = self.freed.notified();
            let refusal = match self.lock().admit(network) {
                Ok((id, connection)) => {
                    metrics::connections_open().increment(1.0);
                    return Some(ConnectionPermit { connections: Arc::clone(self), id, network, connection });
                }
                Err(refusal) => refusal,
            };
            if refusal != Refusal::Later {
                self.refused(refusal, peer);
                return None;
            }
            // A stalled connection becomes closable without any slot being released.
            let _ = tokio::time::timeout(RETRY, freed).await;
        }
    }

    fn refused(&self, refusal: Refusal, peer: IpAddr) {
        let (reason, key) = match refusal {
            Refusal::Address => ("address_limit", "http.max_connections_per_address"),
            Refusal::Server | Refusal::Later => ("server_limit", "http.max_connections"),
        };
        metrics::connection_closed(reason);
        let mut books = self.lock();
        if books.warned.is_none_or(|warned| warned.elapsed() >= WARNING_INTERVAL) {
            books.warned = Some(Instant::now());
            drop(books);
            tracing::warn!(%peer, limit = key, "refused a connection: its address has too many open. If this is your \
                proxy, add it to http.trusted_proxies");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut books = self.connections.lock();
        books.sockets -= 1;
        match self.network {
            Some(network) => books.remove(network, self.id),
            None => books.total -= 1,
        }
        drop(books);
        metrics::connections_open().decrement(1.0);
        self.connections.freed.notify_waiters();
    }
}

impl Books {
    fn admit(&mut self, network: Option<Network>) -> Result<(u64, Connection), Refusal> {
        if let Some(network) = network
            && self.count(network) >= self.max_per_address
            && !self.close_one(network, "address_limit")
        {
            return Err(Refusal::Address);
        }
        if self.total >= self.max {
            let own_count = network.map_or(0, |network| self.count(network)) + 1;
            let own = |books: &mut Self| network.is_some_and(|network| books.close_one(network, "server_limit"));
            if !self.close_one_of_the_heaviest(own_count) && !own(self) {
                return Err(self.refusal(network, own_count));
            }
        }
        let (id, connection) = (self.next, Connection::new());
        self.next += 1;
        self.sockets += 1;
        self.total += 1;
        if let Some(network) = network {
            self.change(network, |holder| drop(holder.insert(id, connection.clone())));
        }
        Ok((id, connection))
    }

    /// Whether a new connection waits when nothing can be closed for it. One from the address with the most
    /// connections must not wait, since others would queue behind it.
    fn refusal(&self, network: Option<Network>, own_count: usize) -> Refusal {
        let others = |network| self.total > self.count(network);
        let heaviest = self.by_count.last().map_or(0, |(count, _)| *count);
        match network {
            Some(network) if own_count > heaviest && others(network) => Refusal::Server,
            _ => Refusal::Later,
        }
    }

    /// Closes a connection of an address that has at least as many as the new one's address would have.
    fn close_one_of_the_heaviest(&mut self, own_count: usize) -> bool {
        let heavy = self.by_count.iter().rev().take_while(|(count, _)| *count >= own_count).take(MAX_SEARCHED);
        let heavy: Vec<Network> = heavy.map(|(_, network)| *network).collect();
        heavy.into_iter().any(|network| self.close_one(network, "server_limit"))
    }

    /// Closes the oldest unproductive connection of an address.
    fn close_one(&mut self, network: Network, reason: &'static str) -> bool {
        let holder = self.holders.get(&network);
        let mut connections = holder.into_iter().flatten().take_while(|(_, connection)| !connection.is_new());
        let Some(id) = connections.find(|(_, connection)| connection.cut_if_unproductive()).map(|(id, _)| *id) else {
            return false;
        };
        metrics::connection_closed(reason);
        self.remove(network, id);
        true
    }

    /// Removes a connection, unless it was removed before.
    fn remove(&mut self, network: Network, id: u64) {
        let mut removed = false;
        self.change(network, |holder| removed = holder.remove(&id).is_some());
        self.total -= usize::from(removed);
    }

    fn change(&mut self, network: Network, change: impl FnOnce(&mut BTreeMap<u64, Connection>)) {
        let holder = self.holders.entry(network).or_default();
        let before = holder.len();
        change(holder);
        let after = holder.len();
        if after == 0 {
            self.holders.remove(&network);
        }
        if before != after {
            self.by_count.remove(&(before, network));
            if after > 0 {
                self.by_count.insert((after, network));
            }
        }
    }

    fn count(&self, network: Network) -> usize {
        self.holders.get(&network).map_or(0, BTreeMap::len)
    }
}

#[cfg(test)]
mod tests;
