use std::time::Duration;

use crate::bench::format;
use crate::latency::Latencies;

/// The result of a way in one round.
pub(super) struct Measured {
    pub(super) charges: u64,
    pub(super) per_second: f64,
    pub(super) latencies: Latencies,
}

impl Measured {
    pub(super) fn new(latencies: Latencies, spent: Duration) -> Self {
        let per_second = format::per_second(latencies.count(), spent);
        Self { charges: u64::try_from(latencies.count()).unwrap_or(u64::MAX), per_second, latencies }
    }
}
