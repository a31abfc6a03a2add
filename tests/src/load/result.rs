use std::collections::BTreeMap;
use std::time::Duration;

use crate::latency::Latencies;

/// The result of a run.
#[derive(Debug, Clone, Default)]
pub struct LoadResult {
    /// How many responses had each status.
    pub by_status: BTreeMap<u16, u64>,
    /// How many connections failed: refused, reset, timed out, closed in mid-response, or not HTTP. A failed connection
    /// is not reopened.
    pub errors: u64,
    /// The error of one of them.
    pub first_error: Option<String>,
    /// From the first request, when all connections are open, to the last response.
    pub elapsed: Duration,
    /// The generator thread's processor time during the run; `None` where the kernel does not provide it.
    pub generator_busy: Option<Duration>,
    /// For each response, from sending its request to its last byte.
    pub latencies: Latencies,
}

impl LoadResult {
    /// How many responses came, of any status.
    #[must_use]
    pub fn responses(&self) -> u64 {
        self.by_status.values().sum()
    }

    /// How many responses had `status`.
    #[must_use]
    pub fn with_status(&self, status: u16) -> u64 {
        self.by_status.get(&status).copied().unwrap_or(0)
    }

    /// Responses per second.
    #[must_use]
    #[expect(clippy::float_arithmetic, reason = "a figure for people, not money")]
    pub fn requests_per_second(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.responses() as f64 / seconds } else { 0.0 }
    }

    /// The fraction of the time that the generator was busy, 0 to 1. Near 1 the generator is the bottleneck, and the
    /// server's own rate is higher.
    #[must_use]
    #[expect(clippy::float_arithmetic, reason = "a figure for people, not money")]
    pub fn generator_load(&self) -> Option<f64> {
        let seconds = self.elapsed.as_secs_f64();
        let busy = self.generator_busy?.as_secs_f64();
        (seconds > 0.0).then(|| busy / seconds)
    }
}
