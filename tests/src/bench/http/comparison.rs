//! Compares two servers by measuring them in turns.
//!
//! A machine drifts by more between two runs than metering may cost, so the two are never compared across runs. Each
//! round measures both, the order alternates, and the ratio is taken within the round.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::bench::Failure;
use crate::bench::rounds::Rounds;
use crate::load::{LoadPlan, LoadResult, Stop, run};

/// A server and the requests to send to it.
#[derive(Clone)]
pub(super) struct Target {
    /// Where it listens.
    pub(super) address: SocketAddr,
    /// The requests; the server must respond to each with 200.
    pub(super) requests: Arc<[Vec<u8>]>,
}

impl fmt::Debug for Target {
    /// Shows only the number of requests: they contain keys, and may be many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("address", &self.address).field("requests", &self.requests.len()).finish()
    }
}

/// The result of a comparison: each side's round with the median rate, and the median of the ratios.
#[derive(Debug, Clone)]
pub(super) struct Comparison {
    /// The metered server.
    pub(super) metered: LoadResult,
    /// Its twin.
    pub(super) unmetered: LoadResult,
    /// Metered over unmetered requests per second, within a round.
    pub(super) ratio: f64,
    /// The lowest and the highest ratio of all rounds.
    pub(super) ratios: (f64, f64),
    /// How many responses the metered server sent in all rounds.
    pub(super) metered_responses: u64,
}

/// Measures both servers in each of `rounds` rounds, for `time` each. Blocks its thread until then.
///
/// # Errors
/// If a connection failed, or a response was not 200.
///
/// # Panics
/// If `rounds` is zero.
#[expect(clippy::float_arithmetic, reason = "a ratio for people")]
pub(super) fn compare(
    metered: &Target,
    unmetered: &Target,
    connections: usize,
    time: Duration,
    rounds: usize,
) -> Result<Comparison, Failure> {
    let measure = |target: &Target| {
        let plan = LoadPlan::new(target.address, connections, Stop::After(time), Arc::clone(&target.requests));
        require_success(run(plan))
    };
    let (mut metered_rounds, mut unmetered_rounds, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let (metered, unmetered) = if round % 2 == 0 {
            let first = measure(metered)?;
            (first, measure(unmetered)?)
        } else {
            let first = measure(unmetered)?;
            (measure(metered)?, first)
        };
        ratios.push(metered.requests_per_second() / unmetered.requests_per_second());
        metered_rounds.push(metered);
        unmetered_rounds.push(unmetered);
    }
    let metered_responses = metered_rounds.iter().map(LoadResult::responses).sum();
    let ratios = Rounds::new(ratios, |ratio| *ratio);
    let median = |results| Rounds::new(results, LoadResult::requests_per_second).median().clone();
    Ok(Comparison {
        metered: median(metered_rounds),
        unmetered: median(unmetered_rounds),
        ratio: *ratios.median(),
        ratios: (*ratios.slowest(), *ratios.fastest()),
        metered_responses,
    })
}

/// Fails unless every response was 200.
pub(in crate::bench) fn require_success(result: LoadResult) -> Result<LoadResult, Failure> {
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

    const TIME: Duration = Duration::from_millis(60);

    /// A server that waits for `pause` before each response.
    fn target(pause: Duration, status_line: &'static str) -> Target {
        let address = serve(move |_| {
            std::thread::sleep(pause);
            Reply::Send(vec![format!("HTTP/1.1 {status_line}\r\ncontent-length: 0\r\n\r\n").into_bytes()])
        });
        Target { address, requests: vec![request("GET", "/", Some("sk_live_secret"), &[])].into() }
    }

    #[test]
    fn the_ratio_is_metered_over_unmetered() {
        let slow = target(Duration::from_millis(6), "200 OK");
        let fast = target(Duration::from_millis(1), "200 OK");
        let comparison = compare(&slow, &fast, 2, TIME, 3).unwrap();
        assert!(comparison.ratio > 0.0 && comparison.ratio < 0.8, "{comparison:?}");
        assert!(comparison.ratios.0 <= comparison.ratio && comparison.ratio <= comparison.ratios.1, "{comparison:?}");
        assert!(comparison.metered_responses > comparison.metered.responses(), "{comparison:?}");
        assert!(comparison.metered.latencies.p50() > comparison.unmetered.latencies.p50(), "{comparison:?}");
        assert!(compare(&fast, &slow, 2, TIME, 1).unwrap().ratio > 1.2);
    }

    #[test]
    fn refused_request_is_an_error() {
        let (good, refusing) = (target(Duration::ZERO, "200 OK"), target(Duration::ZERO, "402 Payment Required"));
        for (metered, unmetered) in [(&refusing, &good), (&good, &refusing)] {
            let error = compare(metered, unmetered, 1, TIME, 1).unwrap_err();
            assert!(error.to_string().contains("had status 402"), "{error}");
        }
    }

    #[test]
    fn failed_connection_is_an_error() {
        let good = target(Duration::ZERO, "200 OK");
        let closing = Target { address: serve(|_| Reply::SendAndClose(Vec::new())), ..good.clone() };
        let error = compare(&good, &closing, 2, TIME, 1).unwrap_err();
        assert!(error.to_string().contains("2 connections failed"), "{error}");
        assert!(!format!("{good:?}").contains("secret"));
    }
}
