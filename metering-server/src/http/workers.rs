//! Worker threads: each has its own runtime and serves its share of the connections, so one thread serves a whole
//! request. Only commits and blocking work run elsewhere.
//!
//! Tasks of a request run on its worker too, so stop the workers last.

use std::cell::Cell;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use metering_core::charging::wake_together;
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a stopping worker waits for its blocked threads, such as one with a DNS lookup.
const BLOCKED_THREADS: Duration = Duration::from_secs(1);
/// How long the end of the server waits for all workers.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

thread_local! {
    /// This thread's worker number, from 1; 0 if it is not a worker.
    static PLACE: Cell<usize> = const { Cell::new(0) };
}

/// The workers of a server. They stop when this is dropped.
#[derive(Debug)]
pub(crate) struct Workers {
    workers: Vec<Worker>,
    stop: CancellationToken,
    /// The threads that have not ended.
    threads: TaskTracker,
}

#[derive(Debug)]
struct Worker {
    runtime: Handle,
    /// How many connections it serves.
    open: Arc<AtomicUsize>,
}

/// Counts a connection until it is dropped, also when the connection's task panics or is aborted.
#[derive(Debug)]
struct Slot(Arc<AtomicUsize>);

impl Workers {
    /// Starts this many workers. Blocks until they run, which takes less than a millisecond each.
    ///
    /// # Errors
    /// When the system has no more threads or file descriptors.
    pub(crate) fn start(count: NonZeroUsize) -> io::Result<Arc<Self>> {
        let (stop, threads) = (CancellationToken::new(), TaskTracker::new());
        let mut started = Self { workers: Vec::new(), stop, threads };
        for number in 1..=count.get() {
            let worker = started.start_worker(number)?;
            started.workers.push(worker);
        }
        Ok(Arc::new(started))
    }

    fn start_worker(&self, number: usize) -> io::Result<Worker> {
        let (report, started) = mpsc::channel();
        let (stop, running) = (self.stop.clone(), self.threads.token());
        thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
            PLACE.set(number);
            // Built here, because a runtime must not be dropped on another runtime's thread.
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = report.send(Err(error));
                    return;
                }
            };
            // A commit answers many requests of a worker: one wake for all of them.
            runtime.spawn(wake_together());
            let _ = report.send(Ok(runtime.handle().clone()));
            runtime.block_on(stop.cancelled());
            runtime.shutdown_timeout(BLOCKED_THREADS);
            drop(running);
        })?;
        let runtime = started.recv().map_err(io::Error::other)??;
        Ok(Worker { runtime, open: Arc::default() })
    }

    /// Serves a connection on the worker that has the fewest.
    pub(crate) fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        // The first of those with the fewest: with few connections, one worker's connections to the upstream stay warm.
        let fewest = self.workers.iter().min_by_key(|worker| worker.open.load(Ordering::Relaxed));
        let worker = fewest.expect("there is at least one");
        let slot = Slot::new(&worker.open);
        // Not an `async` block, which would have room for the connection twice.
        worker.runtime.spawn(connection.map(move |()| drop(slot)))
    }

    /// The current thread's worker number, from 1; 0 on any other thread.
    pub(crate) fn place() -> usize {
        PLACE.get()
    }

    /// Stops the workers, and waits until their threads have ended. Tasks that still run on them are dropped.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.threads.close();
        if tokio::time::timeout(STOP_TIMEOUT, self.threads.wait()).await.is_err() {
            tracing::warn!(threads = self.threads.len(), "some worker threads are blocked and were left behind");
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Slot {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    fn start(count: usize) -> Arc<Workers> {
        Workers::start(NonZeroUsize::new(count).unwrap()).unwrap()
    }

    /// A connection that stays open until it is closed from outside.
    struct Open {
        place: usize,
        end: oneshot::Sender<()>,
        task: JoinHandle<()>,
    }

    impl Open {
        async fn new(workers: &Workers) -> Self {
            let (report, place) = oneshot::channel();
            let (end, ended) = oneshot::channel::<()>();
            let task = workers.spawn(async move {
                report.send(Workers::place()).unwrap();
                let _ = ended.await;
            });
            Self { place: place.await.unwrap(), end, task }
        }

        async fn close(self) {
            self.end.send(()).unwrap();
            self.task.await.unwrap();
        }
    }

    fn open(workers: &Workers) -> Vec<usize> {
        workers.workers.iter().map(|worker| worker.open.load(Ordering::Relaxed)).collect()
    }

    #[tokio::test]
    async fn connections_are_spread_evenly() {
        let workers = start(4);
        let mut connections = Vec::new();
        for _ in 0..16 {
            connections.push(Open::new(&workers).await);
        }
        let mut places: Vec<_> = connections.iter().map(|connection| connection.place).collect();
        places.sort_unstable();
        assert_eq!(places, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4]);
        assert_eq!(Workers::place(), 0, "the test's thread is not a worker");
    }

    #[tokio::test]
    async fn worker_whose_connection_has_closed_gets_the_next_one() {
        let workers = start(3);
        let mut connections = Vec::new();
        for _ in 0..3 {
            connections.push(Open::new(&workers).await);
        }
        for _ in 0..6 {
            let closed = connections.remove(1);
            let place = closed.place;
            closed.close().await;
            connections.push(Open::new(&workers).await);
            assert_eq!(connections[2].place, place);
        }
    }

    #[tokio::test]
    async fn connection_is_no_longer_counted_after_a_panic_or_an_abort() {
        let workers = start(2);
        let panicked = workers.spawn(async { panic!("a handler has a bug") });
        assert!(panicked.await.unwrap_err().is_panic());
        let aborted = Open::new(&workers).await;
        aborted.task.abort();
        assert!(aborted.task.await.unwrap_err().is_cancelled());
        assert_eq!(open(&workers), [0, 0]);
    }

    #[tokio::test]
    async fn stopped_workers_drop_what_still_runs() {
        let workers = start(2);
        let connections = [Open::new(&workers).await, Open::new(&workers).await];
        workers.stop().await;
        assert!(workers.threads.is_empty());
        for connection in connections {
            assert!(connection.task.await.unwrap_err().is_cancelled());
        }
    }
}
