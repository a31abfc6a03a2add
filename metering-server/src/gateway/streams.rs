//! Limits the open streams of each key, and ends them when the key is no longer live.

mod held_body;
pub(crate) mod sockets;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metering_core::access::KeyHash;
use metering_core::wire::ErrorCode;
use metering_core::{Clock, Credits, Error, Store};
use tokio_util::sync::CancellationToken;

use crate::http::{Connection, Response, Shutdown};
use crate::operations::metrics;

/// How long a stream may take to send its end before its connection is cut. A client that does not read would take
/// forever.
const END_GRACE: Duration = Duration::from_secs(1);

/// Balances are checked once in this many checks of the keys, because each takes a separate read.
const CHECKS_PER_BALANCE: u64 = 5;

/// The open streams of this node.
#[derive(Debug)]
pub(crate) struct Streams {
    max_per_key: usize,
    open: Mutex<HashMap<KeyHash, OpenStreams>>,
    stopping: CancellationToken,
}

#[derive(Debug)]
struct OpenStreams {
    count: usize,
    end: CancellationToken,
    /// Ends with `end`, and when the balance is used up.
    sockets_end: CancellationToken,
    /// The balance after the charge of the WebSocket connection that was opened last.
    paid_sockets: Option<Credits>,
    /// The connections of streams being sent, by slot number.
    connections: HashMap<u64, Connection>,
    next: u64,
}

/// The slot of a stream among those of its key, released on drop.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: Arc<Streams>,
    key: KeyHash,
    number: u64,
    end: CancellationToken,
    sockets_end: CancellationToken,
}

/// Marks a request whose response is a stream, and brings its slot from before the charge to the response.
#[derive(Debug, Clone)]
pub(crate) struct StreamRoute(Option<Arc<StreamPermit>>);

impl Streams {
    pub(crate) fn new(max_per_key: usize) -> Self {
        Self { max_per_key, open: Mutex::default(), stopping: CancellationToken::new() }
    }

    /// Reserves a slot for one more stream of a key.
    ///
    /// # Errors
    /// [`Error::TooManyStreams`] when it has its maximum of open streams.
    pub(crate) fn reserve(self: &Arc<Self>, key: KeyHash) -> Result<StreamPermit, Error> {
        let mut open = self.lock();
        let streams = open.entry(key).or_insert_with(OpenStreams::none);
        if streams.count >= self.max_per_key {
            return Err(Error::TooManyStreams { open: streams.count });
        }
        streams.count += 1;
        streams.next += 1;
        let (number, end, sockets_end) = (streams.next, streams.end.clone(), streams.sockets_end.clone());
        Ok(StreamPermit { streams: Arc::clone(self), key, number, end, sockets_end })
    }

    /// The number of open streams.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        self.lock().values().map(|streams| streams.count).sum()
    }

    /// Checks the keys of open streams every `interval` and ends the streams of keys that are no longer live, and less
    /// often the balances behind WebSocket connections. On shutdown, ends all streams.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        store: &dyn Store,
        clock: &dyn Clock,
        interval: Duration,
        shutdown: Shutdown,
    ) {
        for check in 1_u64.. {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = shutdown.cancelled() => break,
            }
            let keys: Vec<KeyHash> = self.lock().keys().copied().collect();
            if keys.is_empty() {
                continue;
            }
            match store.live_keys(&keys, clock.now()).await {
                Ok(live) => {
                    let dead = keys.iter().zip(live).filter(|(_, live)| !live);
                    let ended: Vec<KeyHash> = dead.filter(|(key, _)| self.end(key)).map(|(key, _)| *key).collect();
                    self.cut_later(ended);
                }
                Err(error) => tracing::warn!(%error, "could not check the keys of open streams"),
            }
            if check.is_multiple_of(CHECKS_PER_BALANCE) {
                self.end_unpaid_sockets(store).await;
            }
        }
        self.stopping.cancel();
        let keys = self.lock().iter().map(|(key, streams)| (*key, streams.end.cancel())).map(|(key, ())| key).collect();
        self.cut_later(keys);
    }

    /// Why the server ended a stream.
    fn why_ended(&self) -> ErrorCode {
        if self.stopping.is_cancelled() { ErrorCode::ShuttingDown } else { ErrorCode::Unauthorized }
    }

    /// Ends the streams of a key that is no longer live. Returns `false` if they were ended before.
    fn end(&self, key: &KeyHash) -> bool {
        let open = self.lock();
        let Some(streams) = open.get(key).filter(|streams| !streams.end.is_cancelled()) else { return false };
        tracing::info!(?key, streams = streams.count, "ended the streams of a key that is no longer live");
        streams.end.cancel();
        true
    }

    /// Cuts the connections of ended streams that do not close in time. When a client does not read, the end of the
    /// stream is stuck behind unread data.
    fn cut_later(self: &Arc<Self>, keys: Vec<KeyHash>) {
        if keys.is_empty() {
            return;
        }
        let streams = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(END_GRACE).await;
            let open = streams.lock();
            let ended = keys.iter().filter_map(|key| open.get(key)).filter(|streams| streams.end.is_cancelled());
            for connection in ended.flat_map(|streams| streams.connections.values()) {
                metrics::connection_closed("stream_ended");
                connection.cut();
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyHash, OpenStreams>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenStreams {
    fn none() -> Self {
        let end = CancellationToken::new();
        let sockets_end = end.child_token();
        Self { count: 0, end, sockets_end, paid_sockets: None, connections: HashMap::new(), next: 0 }
    }
}

impl StreamRoute {
    /// `permit` is `None` without a key, on a route that is free.
    pub(crate) fn new(permit: Option<StreamPermit>) -> Self {
        Self(permit.map(Arc::new))
    }

    /// Wraps the response to the client of `connection`: it holds the stream's slot.
    pub(crate) fn hold(self, reply: Response, connection: Option<&Connection>) -> Response {
        match self.0 {
            Some(permit) => permit.hold(reply, connection),
            None => reply,
        }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        if let Entry::Occupied(mut streams) = self.streams.lock().entry(self.key) {
            streams.get_mut().count -= 1;
            streams.get_mut().connections.remove(&self.number);
            if streams.get().count == 0 {
                streams.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> KeyHash {
        KeyHash::from_bytes([byte; 32])
    }

    #[test]
    fn key_has_a_stream_limit_and_gets_permits_back() {
        let streams = Arc::new(Streams::new(2));
        let first = streams.reserve(key(1)).unwrap();
        let _second = streams.reserve(key(1)).unwrap();
        assert!(matches!(streams.reserve(key(1)), Err(Error::TooManyStreams { open: 2 })));
        let _other = streams.reserve(key(2)).unwrap();
        assert_eq!(streams.count(), 3);
        drop(first);
        let _third = streams.reserve(key(1)).unwrap();
        assert_eq!(streams.count(), 3);
    }

    #[test]
    fn keys_without_streams_are_forgotten() {
        let streams = Arc::new(Streams::new(1));
        drop(streams.reserve(key(1)));
        assert!(streams.lock().is_empty());
    }
}
