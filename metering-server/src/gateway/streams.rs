//! Open streams: how many a key may have, and their end when it is revoked.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use http::header;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use metering_core::wire::ErrorCode;
use metering_core::{KeyHash, Store};
use metrics::counter;
use tokio_util::sync::CancellationToken;

use crate::http::{Connection, EventStream, Problem, Response, Shutdown};

/// After how many seconds a client that has too many streams may try again: when one has ended, nobody can tell.
const RETRY_SECONDS: u64 = 5;

/// How long a stream that was told to end may take to send its end. A client that does not read would take for ever.
const END_GRACE: Duration = Duration::from_secs(1);

/// The streams that are open on this node.
#[derive(Debug)]
pub(crate) struct Streams {
    most_per_key: usize,
    open: Mutex<HashMap<KeyHash, OpenStreams>>,
}

#[derive(Debug)]
struct OpenStreams {
    count: usize,
    end: CancellationToken,
    /// Those of streams that are being sent, by the number of their seat.
    connections: HashMap<u64, Connection>,
    next: u64,
}

/// A stream's place among those of its key, given up when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    streams: Arc<Streams>,
    key: KeyHash,
    number: u64,
    end: CancellationToken,
}

impl Streams {
    pub(crate) fn new(most_per_key: usize) -> Self {
        Self { most_per_key, open: Mutex::default() }
    }

    /// A place for one more stream of a key.
    pub(crate) fn reserve(self: &Arc<Self>, key: KeyHash) -> Result<Seat, Problem> {
        let mut open = self.lock();
        let streams = open.entry(key).or_insert_with(OpenStreams::none);
        if streams.count >= self.most_per_key {
            let message = format!("This key has {} streams open, as many as it may; close one.", streams.count);
            return Err(Problem::new(ErrorCode::TooManyStreams, message).retry_after(RETRY_SECONDS));
        }
        streams.count += 1;
        streams.next += 1;
        Ok(Seat { streams: Arc::clone(self), key, number: streams.next, end: streams.end.clone() })
    }

    /// How many streams are open.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        self.lock().values().map(|streams| streams.count).sum()
    }

    /// Looks the keys of open streams up every `interval` and ends those whose key is no longer live; ends all at
    /// the shutdown.
    pub(crate) async fn watch(self: &Arc<Self>, store: &dyn Store, interval: Duration, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = shutdown.cancelled() => break,
            }
            let keys: Vec<KeyHash> = self.lock().keys().copied().collect();
            if keys.is_empty() {
                continue;
            }
            match store.live_keys(&keys).await {
                Ok(live) => {
                    let dead = keys.iter().zip(live).filter(|(_, live)| !live);
                    let ended: Vec<KeyHash> = dead.filter(|(key, _)| self.end(key)).map(|(key, _)| *key).collect();
                    self.cut_later(ended);
                }
                Err(error) => tracing::warn!(%error, "the keys of open streams could not be looked up"),
            }
        }
        let keys = self.lock().iter().map(|(key, streams)| (*key, streams.end.cancel())).map(|(key, ())| key).collect();
        self.cut_later(keys);
    }

    /// Ends the streams of a revoked key; `false` when that was done before.
    fn end(&self, key: &KeyHash) -> bool {
        let open = self.lock();
        let Some(streams) = open.get(key).filter(|streams| !streams.end.is_cancelled()) else { return false };
        tracing::info!(?key, streams = streams.count, "streams of a revoked key were ended");
        streams.end.cancel();
        true
    }

    /// Closes the connections of streams that were ended, unless they end by themselves in time: of a client that does
    /// not read, the end waits behind what it did not read.
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
                counter!("metering_connections_closed_total", "reason" => "stream_ended").increment(1);
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
        Self { count: 0, end: CancellationToken::new(), connections: HashMap::new(), next: 0 }
    }
}

impl Seat {
    /// The same reply to the client of `connection`, whose body ends when it is told to and gives the place up when it is
    /// done.
    pub(crate) fn hold(self, reply: Response, connection: Option<&Connection>) -> Response {
        if let (Some(connection), Some(streams)) = (connection, self.streams.lock().get_mut(&self.key)) {
            streams.connections.insert(self.number, connection.clone());
        }
        let connection = connection.filter(|_| takes_comments(reply.headers()));
        reply.map(|body| {
            let end = self.end.clone().cancelled_owned();
            let mut frames = Box::pin(EventStream::new(body.into_data_stream(), connection).take_until(end));
            let stream = futures_util::stream::poll_fn(move |context| {
                // Moved in: the place is kept for as long as the body is.
                let _seat = &self;
                frames.as_mut().poll_next(context)
            });
            StreamBody::new(stream.map(|data| data.map(Frame::data))).boxed_unsync()
        })
    }
}

impl Drop for Seat {
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

/// Whether a body is server-sent events as they are, between which comments may stand.
fn takes_comments(headers: &header::HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase());
    kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) && !headers.contains_key(header::CONTENT_ENCODING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> KeyHash {
        KeyHash::from_bytes([byte; 32])
    }

    #[test]
    fn a_key_has_so_many_places_and_gets_them_back() {
        let streams = Arc::new(Streams::new(2));
        let first = streams.reserve(key(1)).unwrap();
        let _second = streams.reserve(key(1)).unwrap();
        let refused = streams.reserve(key(1)).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::TooManyStreams);
        let _other = streams.reserve(key(2)).unwrap();
        assert_eq!(streams.count(), 3);
        drop(first);
        let _third = streams.reserve(key(1)).unwrap();
        assert_eq!(streams.count(), 3);
    }

    #[test]
    fn nothing_is_kept_of_keys_without_streams() {
        let streams = Arc::new(Streams::new(1));
        drop(streams.reserve(key(1)));
        assert!(streams.lock().is_empty());
    }
}
