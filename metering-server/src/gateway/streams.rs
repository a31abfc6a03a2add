//! Open streams: how many a key may have, and their end when it is revoked.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use metering_core::wire::ErrorCode;
use metering_core::{KeyHash, Store};
use tokio_util::sync::CancellationToken;

use crate::http::{Problem, Response, Shutdown};

/// After how many seconds a client that has too many streams may try again: when one has ended, nobody can tell.
const RETRY_SECONDS: u64 = 5;

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
}

/// A stream's place among those of its key, given up when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    streams: Arc<Streams>,
    key: KeyHash,
    end: CancellationToken,
}

impl Streams {
    pub(crate) fn new(most_per_key: usize) -> Self {
        Self { most_per_key, open: Mutex::default() }
    }

    /// A place for one more stream of a key.
    pub(crate) fn reserve(self: &Arc<Self>, key: KeyHash) -> Result<Seat, Problem> {
        let mut open = self.lock();
        let streams = open.entry(key).or_insert_with(|| OpenStreams { count: 0, end: CancellationToken::new() });
        if streams.count >= self.most_per_key {
            let message = format!("This key has {} streams open, as many as it may; close one.", streams.count);
            return Err(Problem::new(ErrorCode::TooManyStreams, message).retry_after(RETRY_SECONDS));
        }
        streams.count += 1;
        Ok(Seat { streams: Arc::clone(self), key, end: streams.end.clone() })
    }

    /// How many streams are open.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        self.lock().values().map(|streams| streams.count).sum()
    }

    /// Looks the keys of open streams up every `interval` and ends those whose key is no longer live; ends all at
    /// the shutdown.
    pub(crate) async fn watch(&self, store: &dyn Store, interval: Duration, shutdown: Shutdown) {
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
                    dead.for_each(|(key, _)| self.end(key));
                }
                Err(error) => tracing::warn!(%error, "the keys of open streams could not be looked up"),
            }
        }
        self.lock().values().for_each(|streams| streams.end.cancel());
    }

    fn end(&self, key: &KeyHash) {
        if let Some(streams) = self.lock().get(key) {
            tracing::info!(?key, streams = streams.count, "streams of a revoked key were ended");
            streams.end.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyHash, OpenStreams>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// The same reply, whose body ends when it is told to and gives the place up when it is done.
    pub(crate) fn hold(self, reply: Response) -> Response {
        reply.map(|body| {
            let end = self.end.clone().cancelled_owned();
            let mut frames = Box::pin(body.into_data_stream().take_until(end));
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
