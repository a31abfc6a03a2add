//! The state of one client connection, and a way to close it from elsewhere.
//!
//! hyper owns the socket and offers neither. [`ClientStream`](super::ClientStream) sees every read and write and
//! updates the state here. The connection limits use it to make room, and ended streams and MCP sessions use it to cut
//! clients that do not read.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// A connection whose client has read nothing for this long may be closed to make room. Short hiccups are tolerated.
const STALL_TOLERANCE: Duration = Duration::from_secs(2);
/// A connection younger than this may not have had time to send a request.
pub(super) const MIN_AGE: Duration = Duration::from_millis(250);

/// Waiting for the client, between requests or in the middle of one. Nothing has been charged yet.
const WAITING: u8 = 0;
/// Serving a request.
const SERVING: u8 = 1;
/// Serving a request while the client does not read the response.
const STALLED: u8 = 2;
/// Selected for closing.
const CLOSING: u8 = 3;

/// A client connection; an extension of every request that came over one.
#[derive(Debug, Clone)]
pub(crate) struct Connection(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: AtomicU8,
    opened: Instant,
    /// When the current stall began, in milliseconds since `opened`.
    stalled_since: AtomicU64,
    /// Whether it is encrypted.
    secure: AtomicBool,
    /// Whether requests share it (HTTP/2), or it no longer speaks HTTP. What is read then does not show its state.
    shared: AtomicBool,
    half_closed: CancellationToken,
    cut: CancellationToken,
    /// The protocol that the connection has switched to, if it no longer speaks HTTP.
    switched: OnceLock<TaskTracker>,
}

/// A connection that switched to another protocol. It counts as open until this is dropped.
#[derive(Debug)]
pub(crate) struct Switched {
    _open: TaskTrackerToken,
}

impl Connection {
    pub(crate) fn new() -> Self {
        Self::with(false, CancellationToken::new())
    }

    /// One request of a connection that requests share. Cutting it ends that request's response only.
    pub(super) fn of_request(&self) -> Self {
        Self::with(self.0.secure.load(Ordering::Relaxed), self.0.half_closed.clone())
    }

    fn with(secure: bool, half_closed: CancellationToken) -> Self {
        Self(Arc::new(Shared {
            state: AtomicU8::new(WAITING),
            opened: Instant::now(),
            stalled_since: AtomicU64::new(0),
            secure: AtomicBool::new(secure),
            shared: AtomicBool::new(false),
            half_closed,
            cut: CancellationToken::new(),
            switched: OnceLock::new(),
        }))
    }

    /// The connection switches to another protocol. It may be silent for long, but it is in use: it is not closed to
    /// make room, unless its client does not read. Call it before returning the response.
    pub(crate) fn switches(&self) -> Switched {
        self.begins();
        self.is_shared();
        Switched { _open: self.0.switched.get_or_init(TaskTracker::new).token() }
    }

    /// Resolves when the switched protocol has ended; immediately if the connection did not switch.
    pub(super) async fn until_switched_ends(&self) {
        if let Some(switched) = self.0.switched.get() {
            switched.close();
            switched.wait().await;
        }
    }

    /// Records that the connection is encrypted.
    pub(super) fn is_encrypted(&self) {
        self.0.secure.store(true, Ordering::Relaxed);
    }

    /// Records that requests share the connection: from now on, they set its state.
    pub(super) fn is_shared(&self) {
        self.0.shared.store(true, Ordering::Relaxed);
    }

    /// The scheme of the URLs that its requests were sent to.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.0.secure.load(Ordering::Relaxed) { "https" } else { "http" }
    }

    /// Resolves when the connection is [cut](Self::cut).
    pub(super) fn was_cut(&self) -> WaitForCancellationFutureOwned {
        self.0.cut.clone().cancelled_owned()
    }

    /// Closes the connection now, even while a write to it is blocked.
    pub(crate) fn cut(&self) {
        self.0.cut.cancel();
    }

    /// Runs what uses the connection until it ends or is [cut](Self::cut).
    pub(crate) async fn run<F: Future>(&self, connection: F) -> Option<F::Output> {
        self.0.cut.run_until_cancelled(connection).await
    }

    /// Resolves when the client has half-closed the connection. It may still be reading, so it still gets its response;
    /// or it may be gone, which only a write reveals.
    pub(crate) fn half_closed(&self) -> WaitForCancellationFutureOwned {
        self.0.half_closed.clone().cancelled_owned()
    }

    /// Whether the client has half-closed the connection: what was sent to it may not have arrived.
    pub(crate) fn is_half_closed(&self) -> bool {
        self.0.half_closed.is_cancelled()
    }

    /// Whether the connection was just opened. Such a connection is not closed to make room: in a flood, it is cheaper
    /// to refuse the new connection, and fairer to clients that are about to send a request.
    pub(super) fn is_new(&self) -> bool {
        self.0.opened.elapsed() < MIN_AGE
    }

    /// Cuts the connection if that loses no charged work, or if its client does not read the response.
    pub(super) fn cut_if_unproductive(&self) -> bool {
        let chosen = self.exchange(WAITING, CLOSING) || (self.is_stuck() && self.exchange(STALLED, CLOSING));
        if chosen {
            self.cut();
        }
        chosen
    }

    fn is_stuck(&self) -> bool {
        let since = Duration::from_millis(self.0.stalled_since.load(Ordering::Relaxed));
        self.0.opened.elapsed().saturating_sub(since) >= STALL_TOLERANCE
    }

    pub(super) fn is_serving(&self) -> bool {
        self.0.state.load(Ordering::Relaxed) == SERVING
    }

    /// Records that nothing more was received for now: the server waits for the client, unless requests share the
    /// connection.
    pub(super) fn waits(&self) {
        if !self.0.shared.load(Ordering::Relaxed) {
            self.exchange(SERVING, WAITING);
        }
    }

    /// Records that part of a request arrived. Returns `false` when the connection is about to be closed, and no
    /// request may start.
    pub(super) fn received(&self) -> bool {
        if !self.0.shared.load(Ordering::Relaxed) {
            self.exchange(WAITING, SERVING);
        }
        self.0.state.load(Ordering::Acquire) != CLOSING
    }

    /// Records that the first of the requests that share the connection begins. Returns `false` when the connection is
    /// about to be closed, and no request may start.
    pub(super) fn begins(&self) -> bool {
        self.exchange(WAITING, SERVING);
        self.0.state.load(Ordering::Acquire) != CLOSING
    }

    /// Records that no request shares the connection any longer.
    pub(super) fn rests(&self) {
        self.exchange(SERVING, WAITING);
        self.exchange(STALLED, WAITING);
    }

    /// Records that the client has stopped reading its response.
    pub(super) fn stalls(&self) {
        let since = u64::try_from(self.0.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.stalled_since.store(since, Ordering::Relaxed);
        self.exchange(SERVING, STALLED);
    }

    /// Records that the client reads its response again.
    pub(super) fn resumes(&self) {
        self.exchange(STALLED, SERVING);
    }

    /// Records that the client has half-closed the connection.
    pub(crate) fn half_close(&self) {
        self.0.half_closed.cancel();
    }

    fn exchange(&self, from: u8, to: u8) -> bool {
        self.0.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_cut(connection: &Connection) -> bool {
        connection.0.cut.is_cancelled()
    }

    #[test]
    fn only_idle_connections_are_closed() {
        let connection = Connection::new();
        assert!(connection.received());
        assert!(!connection.cut_if_unproductive() && !is_cut(&connection), "a request is being served");
        connection.waits();
        assert!(connection.cut_if_unproductive() && is_cut(&connection));
        assert!(!connection.cut_if_unproductive(), "it is cut only once");
        assert!(!connection.received(), "a request that arrives too late does not start");
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_switched_is_kept_while_it_is_silent_and_counted_until_it_ends() {
        let connection = Connection::new();
        assert!(connection.received());
        let switched = connection.switches();
        connection.waits();
        assert!(!connection.cut_if_unproductive(), "it waits for a message, not for a request");
        connection.stalls();
        tokio::time::advance(STALL_TOLERANCE).await;
        let ending = tokio::time::timeout(STALL_TOLERANCE, connection.until_switched_ends());
        assert!(ending.await.is_err(), "it is still open");
        drop(switched);
        connection.until_switched_ends().await;
        assert!(connection.cut_if_unproductive(), "its client does not read");
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_does_not_read_its_response_is_closed() {
        let connection = Connection::new();
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(connection.received());
        connection.stalls();
        tokio::time::advance(STALL_TOLERANCE / 2).await;
        assert!(!connection.cut_if_unproductive(), "a short stall is tolerated");
        connection.resumes();
        tokio::time::advance(STALL_TOLERANCE).await;
        assert!(!connection.cut_if_unproductive(), "the client has resumed reading");
        connection.stalls();
        tokio::time::advance(STALL_TOLERANCE).await;
        assert!(connection.cut_if_unproductive());
    }
}
