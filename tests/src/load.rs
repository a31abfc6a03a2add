//! A load generator: connections that each send a request, wait for its response and send the next.
//!
//! It runs in one thread with a runtime of its own, so that it takes one core at most, and can share a small machine
//! with the server that it measures. Per request it costs one write and one read: requests are built beforehand, a
//! buffer lasts as long as its connection, and of a response only status and framing are read.
//!
//! The loop is closed: a server that stalls is sent less. What a percentile says is thus how long a caller waited that
//! had asked at once after its last answer.

mod body;
mod busy;
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
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use connection::Connection;
pub use plan::{LoadPlan, Stop};
pub use request::{request, request_with_json};
pub use result::LoadResult;
use result::Share;

/// Runs a plan to its end.
///
/// # Panics
/// When the operating system has no thread or no file descriptor left to run it with.
#[must_use]
pub fn run(plan: LoadPlan) -> LoadResult {
    run_observed(plan, |_| ())
}

/// As [`run`]; `observer` is shown each response, in the generator's thread and so in the order of their ends.
///
/// # Panics
/// As [`run`], and with the observer's own panic.
#[must_use]
pub fn run_observed(plan: LoadPlan, observer: impl Fn(&Answered<'_>) + Send + Sync + 'static) -> LoadResult {
    start(plan, observer).join()
}

/// As [`run_observed`], without waiting for the end: the server may be stopped, killed or reconfigured meanwhile.
///
/// # Panics
/// When the operating system has no thread left to run it with, or the plan has no requests or no address.
#[must_use]
pub fn start(plan: LoadPlan, observer: impl Fn(&Answered<'_>) + Send + Sync + 'static) -> RunningLoad {
    assert!(!plan.requests.is_empty() && !plan.addresses.is_empty(), "a plan has requests and an address");
    let thread = std::thread::Builder::new().name("load".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("the machine has file descriptors left").block_on(run_all(plan, observer))
    });
    RunningLoad { thread: thread.expect("the machine has threads left") }
}

/// A load that was started.
#[derive(Debug)]
pub struct RunningLoad {
    thread: JoinHandle<LoadResult>,
}

impl RunningLoad {
    /// Waits for its end.
    ///
    /// # Panics
    /// With the panic of the observer, or of the run itself.
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

/// A response, as an observer sees it: its head, with the body already passed over.
#[derive(Debug, Clone, Copy)]
pub struct Answered<'c> {
    /// Which request was answered: its place in the plan's list.
    pub request: usize,
    /// With what status.
    pub status: u16,
    head: &'c [u8],
}

impl<'c> Answered<'c> {
    /// The value of the first header of that name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'c str> {
        head::header(self.head, name)
    }
}

/// What the connections of a run share.
struct Run<O> {
    plan: LoadPlan,
    observer: O,
    begun: Instant,
    sent: AtomicU64,
}

impl<O> Run<O> {
    /// The place of the next request to send, unless the run is over at `now`.
    ///
    /// One count for all connections: with a request count to stop at that is the length of the list, each request is
    /// sent once, however unevenly the connections progress.
    fn next(&self, now: Instant) -> Option<usize> {
        let sent = self.sent.fetch_add(1, Ordering::Relaxed);
        let over = match self.plan.stop {
            Stop::After(duration) => now.duration_since(self.begun) >= duration,
            Stop::AfterRequests(count) => sent >= count,
        };
        let length = u64::try_from(self.plan.requests.len()).unwrap_or(u64::MAX);
        let place = |sent: u64| usize::try_from(sent % length).ok();
        if over { None } else { Some(place(sent)?.wrapping_add(self.plan.first) % self.plan.requests.len()) }
    }
}

async fn run_all<O: Fn(&Answered<'_>) + Send + Sync + 'static>(plan: LoadPlan, observer: O) -> LoadResult {
    // All connections stand before the clock starts, so that what is measured is requests.
    let addresses: Vec<_> = plan.addresses.iter().copied().cycle().take(plan.connections).collect();
    let opening: Vec<_> =
        addresses.iter().map(|address| tokio::spawn(Connection::open(*address, plan.time_out))).collect();
    let mut open = Vec::with_capacity(opening.len());
    for connection in opening {
        open.push(finished(connection).await);
    }
    let busy_before = busy::thread_time();
    let run = Arc::new(Run { plan, observer, begun: Instant::now(), sent: AtomicU64::new(0) });
    let to = addresses.into_iter().zip(open);
    let driven: Vec<_> =
        to.map(|(address, connection)| tokio::spawn(drive(address, connection, Arc::clone(&run)))).collect();
    let mut all = Share::default();
    for share in driven {
        all.merge(finished(share).await);
    }
    let elapsed = run.begun.elapsed();
    let busy = busy::thread_time().zip(busy_before).map(|(after, before)| after.saturating_sub(before));
    all.into_result(elapsed, busy)
}

async fn finished<T>(task: tokio::task::JoinHandle<T>) -> T {
    match task.await {
        Ok(value) => value,
        Err(error) => panic::resume_unwind(error.into_panic()),
    }
}

/// Drives one connection until the run is over or the connection fails.
async fn drive<O: Fn(&Answered<'_>)>(
    address: SocketAddr,
    connection: io::Result<Connection>,
    run: Arc<Run<O>>,
) -> Share {
    let mut share = Share::default();
    let outcome = match connection {
        Ok(connection) => drive_open(address, connection, &run, &mut share).await,
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        share.count_error(&error);
    }
    share
}

async fn drive_open<O: Fn(&Answered<'_>)>(
    address: SocketAddr,
    mut connection: Connection,
    run: &Run<O>,
    share: &mut Share,
) -> io::Result<()> {
    let LoadPlan { time_out, requests, .. } = &run.plan;
    let mut begun = Instant::now();
    while let Some(request) = run.next(begun) {
        let response = connection.exchange(&requests[request], begun).await?;
        let ended = Instant::now();
        share.count(response.status, ended.duration_since(begun));
        (run.observer)(&Answered { request, status: response.status, head: response.head });
        begun = ended;
        if !response.keep_alive {
            // The server asked for it in good order, so it is no error; opening anew is part of the next latency.
            connection = Connection::open(address, *time_out).await?;
        }
    }
    Ok(())
}
