//! A response while it is received, for its client and for retries.
//!
//! While it is on the shelf, all of it is in memory, and the upstream is read at full speed. Once it is dropped from
//! the shelf, only unread parts are kept, and the upstream waits for the readers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, HeaderMap, StatusCode, header};
use metering_core::charging::{Progress, ReplayKey};
use tokio::sync::watch;

use crate::gateway::delivery::BodyError;

/// How many clients may read a recording at a time, and how many get it in all: one charge does not buy any number of
/// downloads.
const READERS_MAX: usize = 8;
const REPLAYS_MAX: usize = 16;

/// How much is received ahead of the readers of a response that is not kept.
const AHEAD_BYTES: usize = 256 << 10;

/// The head of a response.
#[derive(Clone)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) extensions: Extensions,
}

pub(super) struct Recording {
    pub(super) key: ReplayKey,
    /// Whether its request has an idempotency key: then it is kept although it was delivered.
    pub(super) is_keyed: bool,
    state: watch::Sender<State>,
}

impl fmt::Debug for Recording {
    /// Leaves out the content, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("is_keyed", &self.is_keyed).finish_non_exhaustive()
    }
}

/// The data received so far.
#[derive(Default)]
pub(super) struct State {
    pub(super) head: Option<Head>,
    pieces: BTreeMap<usize, Bytes>,
    received: usize,
    received_bytes: usize,
    expected_bytes: Option<usize>,
    pub(super) trailers: Option<HeaderMap>,
    pub(super) end: Option<End>,
    is_dropped: bool,
    is_delivered: bool,
    readers: BTreeMap<u64, usize>,
    next_reader: u64,
    replays: usize,
}

/// How a recording ended.
#[derive(Clone)]
pub(super) enum End {
    Complete,
    /// It broke off, with this error.
    Broken(Arc<BodyError>),
    /// The recording was dropped.
    GivenUp,
}

impl Recording {
    pub(super) fn new(key: ReplayKey, is_keyed: bool) -> Arc<Self> {
        Arc::new(Self { key, is_keyed, state: watch::Sender::new(State::default()) })
    }

    /// Lets one more client read it from its start: its number, and what it reads. `None` if its start is no longer
    /// there.
    pub(super) fn admit(&self, replays: bool) -> Option<(u64, watch::Receiver<State>)> {
        let mut number = None;
        self.state.send_if_modified(|state| {
            if !replays || state.can_be_replayed() {
                number = Some(state.next_reader);
                state.readers.insert(state.next_reader, 0);
                state.next_reader += 1;
                state.replays += usize::from(replays);
            }
            false
        });
        number.map(|number| (number, self.state.subscribe()))
    }

    pub(super) fn begin(&self, head: Head) {
        self.state.send_modify(|state| {
            state.expected_bytes = announced(&head.headers);
            state.head = Some(head);
        });
    }

    pub(super) fn push(&self, data: Bytes) {
        self.state.send_modify(|state| {
            state.received_bytes += data.len();
            state.pieces.insert(state.received, data);
            state.received += 1;
            if state.expected_bytes.is_some_and(|expected| state.received_bytes >= expected) {
                // No reader wants more, not even the end.
                state.end.get_or_insert(End::Complete);
            }
        });
    }

    pub(super) fn finish_with(&self, trailers: HeaderMap) {
        self.state.send_modify(|state| state.trailers = Some(trailers));
    }

    pub(super) fn breaks(&self, error: &BodyError) {
        let error: BodyError = match error.downcast_ref::<metering_core::Error>() {
            Some(own) => own.clone().into(),
            None => error.to_string().into(),
        };
        self.state.send_modify(|state| state.end = Some(End::Broken(Arc::new(error))));
    }

    pub(super) fn end(&self, complete: bool) {
        self.state.send_modify(|state| {
            state.end.get_or_insert(if complete { End::Complete } else { End::GivenUp });
        });
    }

    /// It is no longer kept.
    pub(super) fn drop_from_shelf(&self) {
        self.state.send_modify(|state| {
            state.is_dropped = true;
            state.forget_what_was_read();
        });
    }

    /// A reader has read this many pieces.
    pub(super) fn was_read(&self, reader: u64, pieces: usize) {
        self.state.send_if_modified(|state| {
            if let Some(read) = state.readers.get_mut(&reader) {
                *read = pieces;
            }
            state.is_dropped && state.forget_what_was_read()
        });
    }

    /// A reader has gone, whether or not it got the whole response.
    pub(super) fn was_left(&self, reader: u64, pieces: usize, reached: bool) {
        self.state.send_modify(|state| {
            state.readers.remove(&reader);
            let has_all = pieces == state.received && matches!(state.end, Some(End::Complete));
            state.is_delivered |= reached && has_all;
            if state.is_dropped {
                state.forget_what_was_read();
            }
        });
        let is_over = self.state.borrow().is_delivered && !self.is_keyed;
        if is_over {
            self.drop_from_shelf();
        }
    }

    /// Resolves when a response that is not kept has room for more.
    pub(super) async fn has_room(&self) {
        let mut state = self.state.subscribe();
        // The sender is in `self`.
        let _ = state.wait_for(|state| !state.is_dropped || state.unread_bytes() < AHEAD_BYTES).await;
    }

    /// Resolves when the reader of a response that is not kept has caught up with what was received.
    pub(super) async fn is_read(&self) {
        // The sender is in `self`.
        let _ = self.state.subscribe().wait_for(|state| state.unread_bytes() == 0).await;
    }

    /// Resolves when it was not read for `time`, or can no longer be read.
    pub(super) async fn is_useless(&self, time: Duration) {
        let mut state = self.state.subscribe();
        loop {
            let _ = state.wait_for(|state| state.readers.is_empty()).await;
            let returns = state.wait_for(|state| state.is_dropped || !state.readers.is_empty());
            match tokio::time::timeout(time, returns).await {
                Ok(Ok(state)) if !state.readers.is_empty() => {}
                _ => return,
            }
        }
    }

    /// Resolves when it is no longer kept.
    pub(super) async fn is_dropped(&self) {
        let _ = self.state.subscribe().wait_for(|state| state.is_dropped).await;
    }

    /// Whether one more client can get it.
    pub(super) fn can_be_replayed(&self) -> bool {
        self.state.borrow().can_be_replayed()
    }

    pub(super) fn progress(&self) -> Progress {
        if self.state.borrow().is_delivered { Progress::Delivered } else { Progress::Undelivered }
    }

    /// Whether a client reads it now.
    pub(super) fn is_being_read(&self) -> bool {
        !self.state.borrow().readers.is_empty()
    }

    /// Whether all of it was received.
    pub(super) fn is_finished(&self) -> bool {
        self.state.borrow().end.is_some()
    }

    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.state.borrow().received_bytes
    }
}

impl State {
    /// A piece, if it was received and is still there.
    pub(super) fn piece(&self, number: usize) -> Option<Bytes> {
        self.pieces.get(&number).cloned()
    }

    fn can_be_replayed(&self) -> bool {
        !self.is_dropped && self.readers.len() < READERS_MAX && self.replays < REPLAYS_MAX
    }

    fn unread_bytes(&self) -> usize {
        self.pieces.values().map(Bytes::len).sum()
    }

    /// Forgets the pieces that all readers have read. Returns whether there were any.
    fn forget_what_was_read(&mut self) -> bool {
        let slowest = self.readers.values().copied().min().unwrap_or(self.received);
        let rest = self.pieces.split_off(&slowest);
        !std::mem::replace(&mut self.pieces, rest).is_empty()
    }
}

/// The length that a head announces.
fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
