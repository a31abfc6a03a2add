//! A load generator: each connection sends a request, waits for its response and sends the next.
//!
//! It runs on one thread with its own runtime, so it takes one core at most and can share a small machine with the
//! server under test. A request costs one write and one read: requests are built beforehand, each connection reuses one
//! buffer, and only a response's status and framing are parsed.
//!
//! The loop is closed: a stalled server gets fewer requests. A percentile is therefore the wait of a caller that sends
//! its next request as soon as it has its response.

mod body;
pub(crate) mod busy;
mod connection;
mod head;
mod malformed;
mod plan;
mod request;
mod result;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use connection::Connection;
pub use plan::{LoadPlan, Stop};
pub use request::{request, request_with_json};
pub use result::LoadResult;

/// Runs a plan to its end.
///
/// # Panics
/// If the operating system has no thread or file descriptor left.
#[must_use]
pub fn run(plan: LoadPlan) -> LoadResult {
    run_observed(plan, |_| ())
}

/// Like [`run`]; `observer` sees each response, on the generator's thread and thus in the order in which they end.
///
/// # Panics
/// Same as [`run`], and if the observer panics.
#[must_use]
pub fn run_observed(plan: LoadPlan, observer: impl Fn(&ObservedResponse<'_>) + Send + Sync + 'static) -> LoadResult {
    start(plan, observer).join()
}

/// Like [`run_observed`], without waiting for the end: the server may be stopped, killed or reconfigured meanwhile.
///
/// # Panics
/// If the operating system has no thread left, or the plan has no requests or no address.
#[must_use]
pub fn start(plan: LoadPlan, observer: impl Fn(&ObservedResponse<'_>) + Send + Sync + 'static) -> RunningLoad {
    assert!(!plan.requests.is_empty() && !plan.addresses.is_empty(), "a plan needs requests and an address");
    let thread = std::thread::Builder::new().name("load".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("the machine has file descriptors left").block_on(run_all(plan, observer))
    });
    RunningLoad { thread: thread.expect("the machine has threads left") }
}

/// A load that is running.
#[derive(Debug)]
pub struct RunningLoad {
    thread: JoinHandle<LoadResult>,
}

impl RunningLoad {
    /// Waits until it ends.
    ///
    /// # Panics
    /// If the observer or the run itself panicked.
    #[must_use]
    pub fn join(self) -> LoadResult {
        self.thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause))
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

/// A response as an observer sees it: its head, after the body was skipped.
#[derive(Debug, Clone, Copy)]
pub struct ObservedResponse<'c> {
    /// The index of the request in the plan's list.
    pub request: usize,
    /// The response's status.
    pub status: u16,
    head: &'c [u8],
}

impl<'c> ObservedResponse<'c> {
    /// The value of the first header of that name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'c str> {
        head::header(self.head, name)
    }
}

/// The shared state of a run's connections.
struct Run<O> {
    plan: LoadPlan,
    observer: O,
    started: Instant,
    sent: AtomicU64,
    /// The generator has one thread, so connections never wait for each other here.
    result: Mutex<LoadResult>,
}

impl<O> Run<O> {
    fn update<T>(&self, change: impl FnOnce(&mut LoadResult) -> T) -> T {
        change(&mut self.result.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The index of the next request to send, unless the run is over at `now`.
    ///
    /// All connections share one counter. If the request count to stop at is the length of the list, each request is
    /// therefore sent once, even if the connections progress unevenly.
    fn next(&self, now: Instant) -> Option<usize> {
        let sent = self.sent.fetch_add(1, Ordering::Relaxed);
        let over = match self.plan.stop {
            Stop::After(duration) => now.duration_since(self.started) >= duration,
            Stop::AfterRequests(count) => sent >= count,
        };
        let length = u64::try_from(self.plan.requests.len()).unwrap_or(u64::MAX);
        let index = |sent: u64| usize::try_from(sent % length).ok();
        if over { None } else { Some(index(sent)?.wrapping_add(self.plan.first) % self.plan.requests.len()) }
    }
}

async fn run_all<O: Fn(&ObservedResponse<'_>) + Send + Sync + 'static>(plan: LoadPlan, observer: O) -> LoadResult {
    // All connections are open before the clock starts, so only requests are measured.
    let addresses: Vec<_> = plan.addresses.iter().copied().cycle().take(plan.connections).collect();
    let opening: Vec<_> =
        addresses.iter().map(|address| tokio::spawn(Connection::open(*address, plan.timeout))).collect();
    let mut open = Vec::with_capacity(opening.len());
    for connection in opening {
        open.push(finished(connection).await);
    }
    let busy_before = busy::thread_time();
    let run =
        Arc::new(Run { plan, observer, started: Instant::now(), sent: AtomicU64::new(0), result: Mutex::default() });
    let to = addresses.into_iter().zip(open);
    let driven: Vec<_> =
        to.map(|(address, connection)| tokio::spawn(drive(address, connection, Arc::clone(&run)))).collect();
    for connection in driven {
        finished(connection).await;
    }
    run.update(|result| {
        result.elapsed = run.started.elapsed();
        let busy = busy::thread_time().zip(busy_before);
        result.generator_busy = busy.map(|(after, before)| after.saturating_sub(before));
        std::mem::take(result)
    })
}

async fn finished<T>(task: tokio::task::JoinHandle<T>) -> T {
    match task.await {
        Ok(value) => value,
        Err(error) => panic::resume_unwind(error.into_panic()),
    }
}

/// Drives one connection until the run is over or the connection fails.
async fn drive<O: Fn(&ObservedResponse<'_>)>(
    address: SocketAddr,
    connection: io::Result<Connection>,
    run: Arc<Run<O>>,
) {
    let outcome = match connection {
        Ok(connection) => drive_open(address, connection, &run).await,
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        run.update(|result| {
            result.errors += 1;
            result.first_error.get_or_insert_with(|| error.to_string());
        });
    }
}

async fn drive_open<O: Fn(&ObservedResponse<'_>)>(
    address: SocketAddr,
    mut connection: Connection,
    run: &Run<O>,
) -> io::Result<()> {
    let LoadPlan { timeout, requests, .. } = &run.plan;
    let mut started = Instant::now();
    while let Some(request) = run.next(started) {
        let response = connection.exchange(&requests[request], started).await?;
        let ended = Instant::now();
        run.update(|result| {
            *result.by_status.entry(response.status).or_default() += 1;
            result.latencies.record(ended.duration_since(started));
        });
        (run.observer)(&ObservedResponse { request, status: response.status, head: response.head });
        started = ended;
        if !response.keep_alive {
            // The server asked for it properly, so it is not an error; reconnecting is part of the next latency.
            connection = Connection::open(address, *timeout).await?;
        }
    }
    Ok(())
}
