//! Sends load over HTTP: with `wrk` where it is installed, otherwise with the benchmark's own load generator.

mod wrk;

use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Failure;
use super::sample::Sample;
use super::tools::Tools;
use crate::load::{LoadPlan, LoadResult, Stop, run};
use wrk::Wrk;

/// Connections for using each key once.
const WARM_UP_CONNECTIONS: usize = 64;

/// The program that sends the requests.
#[derive(Debug)]
pub(super) enum Generator {
    Wrk(Wrk),
    Own,
}

/// A server and the requests to send to it. The server must respond to each with 200.
pub(super) struct Target {
    pub(super) address: SocketAddr,
    requests: Arc<[Vec<u8>]>,
    /// Each measurement continues with the request after the last one, so that all keys are used in the long run.
    next: Cell<usize>,
}

impl Target {
    pub(super) fn new(address: SocketAddr, requests: Arc<[Vec<u8>]>) -> Self {
        Self { address, requests, next: Cell::new(0) }
    }

    /// Sends each request once.
    ///
    /// # Errors
    /// If a connection failed, or a response was not 200.
    pub(super) fn warm_up(&self) -> Result<Sample, Failure> {
        let connections = WARM_UP_CONNECTIONS.min(self.requests.len());
        let stop = Stop::AfterRequests(u64::try_from(self.requests.len())?);
        let result = run(LoadPlan::new(self.address, connections, stop, Arc::clone(&self.requests)));
        Ok(Sample::from(&require_success(result)?))
    }

    fn advance(&self, requests: u64) -> Result<(), Failure> {
        self.next.set(self.next.get().wrapping_add(usize::try_from(requests)?) % self.requests.len());
        Ok(())
    }
}

impl fmt::Debug for Target {
    /// Shows only the number of requests: they contain keys, and may be many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("address", &self.address).field("requests", &self.requests.len()).finish()
    }
}

impl Generator {
    pub(super) fn choose(tools: &Tools) -> Result<Self, Failure> {
        match &tools.wrk {
            Some(program) => Ok(Self::Wrk(Wrk::new(program)?)),
            None => Ok(Self::Own),
        }
    }

    /// Sends requests over `connections` connections for `time`. Each connection waits for its response before it sends
    /// the next request.
    ///
    /// # Errors
    /// If a connection failed, or a response was not 200.
    pub(super) fn measure(&self, target: &Target, connections: usize, time: Duration) -> Result<Sample, Failure> {
        let (requests, first) = (&target.requests, target.next.get());
        let sample = match self {
            Self::Wrk(wrk) => wrk.measure(target.address, requests, first, connections, time)?,
            Self::Own => {
                let plan = LoadPlan::new(target.address, connections, Stop::After(time), Arc::clone(requests));
                Sample::from(&require_success(run(LoadPlan { first, ..plan }))?)
            }
        };
        target.advance(sample.responses)?;
        Ok(sample)
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wrk(_) => "`wrk` with one thread",
            Self::Own => "the benchmark's own load generator, with one thread",
        })
    }
}

/// Fails unless every response was 200.
pub(super) fn require_success(result: LoadResult) -> Result<LoadResult, Failure> {
    if result.errors > 0 {
        let cause = result.first_error.as_deref().unwrap_or("unknown");
        return Err(format!("{} connections failed; the first error was: {cause}", result.errors).into());
    }
    match result.by_status.iter().find(|(status, _)| **status != 200) {
        Some((status, count)) => Err(format!("{count} responses had status {status}").into()),
        None if result.by_status.is_empty() => Err("there was no response".into()),
        None => Ok(result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::request;
    use crate::scripted::{Reply, serve};
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    const TIME: Duration = Duration::from_millis(150);

    /// The generators that this machine has.
    fn generators() -> Vec<Generator> {
        let found = Generator::choose(&Tools::find()).unwrap();
        if matches!(found, Generator::Own) { vec![found] } else { vec![found, Generator::Own] }
    }

    /// A server and its requests; it records the request numbers that it has seen.
    fn target(requests: usize, status_line: &'static str, seen: Arc<Mutex<BTreeSet<u64>>>) -> Target {
        let address = serve(move |request| {
            let number = request.line.trim_start_matches("GET /").split(' ').next().unwrap();
            seen.lock().unwrap().insert(number.parse().unwrap());
            std::thread::sleep(Duration::from_millis(2));
            Reply::Send(vec![format!("HTTP/1.1 {status_line}\r\ncontent-length: 0\r\n\r\n").into_bytes()])
        });
        let requests: Vec<_> =
            (0..requests).map(|path| request("GET", &format!("/{path}"), Some("sk_live_secret"), &[])).collect();
        Target::new(address, requests.into())
    }

    #[test]
    fn measurement_begins_with_the_next_request() {
        const NEXT: u64 = 50_000;
        for generator in generators() {
            let seen = Arc::<Mutex<BTreeSet<u64>>>::default();
            let target = target(100_000, "200 OK", Arc::clone(&seen));
            target.advance(NEXT).unwrap();
            let sample = generator.measure(&target, 2, TIME).unwrap();
            assert!(sample.rate() > 0.0 && sample.p50 >= Some(Duration::from_millis(2)), "{sample:?}");
            // wrk takes one request from the script for inspection, and does not send it.
            let first = *seen.lock().unwrap().first().unwrap();
            assert!((NEXT..=NEXT + 1).contains(&first), "{generator}: {first}");
            assert_eq!(u64::try_from(target.next.get()).unwrap(), NEXT + sample.responses, "{generator}");
            assert!(!format!("{target:?}").contains("secret"));
        }
    }

    #[test]
    fn refused_request_is_an_error() {
        for generator in generators() {
            let error = generator.measure(&target(1, "402 Payment Required", Arc::default()), 1, TIME).unwrap_err();
            assert!(error.to_string().contains("responses had status"), "{generator}: {error}");
        }
    }

    #[test]
    fn failed_connection_is_an_error() {
        for generator in generators() {
            let closing =
                Target::new(serve(|_| Reply::SendAndClose(Vec::new())), vec![request("GET", "/", None, &[])].into());
            let error = generator.measure(&closing, 2, TIME).unwrap_err();
            assert!(error.to_string().contains("connections failed"), "{generator}: {error}");
        }
    }

    #[test]
    fn warming_up_sends_each_request_once() {
        let seen = Arc::<Mutex<BTreeSet<u64>>>::default();
        assert_eq!(target(200, "200 OK", Arc::clone(&seen)).warm_up().unwrap().responses, 200);
        assert_eq!(seen.lock().unwrap().len(), 200);
    }
}
