//! The result of one measurement of a server, with any tool.

use std::time::Duration;

use super::{Failure, format};
use crate::load::LoadResult;
use crate::process::busy;
use crate::shim::Flushes;

/// The result of one measurement.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sample {
    /// Successful responses.
    pub(super) responses: u64,
    /// How many more requests the server may have handled, because their responses were not awaited at the end.
    pub(super) cut_off: u64,
    /// From the first request to the last response.
    pub(super) elapsed: Duration,
    /// The latency of half of the requests, at most.
    pub(super) p50: Option<Duration>,
    /// The latency of 99 % of the requests, at most.
    pub(super) p99: Option<Duration>,
    /// The fraction of the time that the load generator was busy; 1 is one core.
    pub(super) generator_busy: Option<f64>,
    /// Resident memory of the measured processes afterwards, in bytes.
    pub(super) memory: Option<u64>,
    /// The processor time that the measured processes spent.
    pub(super) processor_time: Option<Duration>,
    /// The flushes of the data folder, where the shim measures them.
    pub(super) flushes: Option<Flushes>,
}

impl Sample {
    /// Responses per second.
    pub(super) fn rate(&self) -> f64 {
        format::per_second(usize::try_from(self.responses).unwrap_or(usize::MAX), self.elapsed)
    }

    /// Measures, and adds the processor time of these processes.
    pub(super) fn with_processor_time(
        processes: &[u32],
        measure: impl FnOnce() -> Result<Self, Failure>,
    ) -> Result<Self, Failure> {
        let before = busy(processes);
        let sample = measure()?;
        let spent = busy(processes).zip(before).map(|(after, before)| after.saturating_sub(before));
        Ok(Self { processor_time: spent, ..sample })
    }

    /// The processor time for each response.
    pub(super) fn processor_time_per_response(&self) -> Option<Duration> {
        let nanos = self.processor_time?.as_nanos().checked_div(u128::from(self.responses))?;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}

impl From<&LoadResult> for Sample {
    /// The benchmark's own generator awaits every response.
    fn from(result: &LoadResult) -> Self {
        Self {
            responses: result.responses(),
            cut_off: 0,
            elapsed: result.elapsed,
            p50: result.latencies.p50(),
            p99: result.latencies.p99(),
            generator_busy: result.generator_load(),
            memory: None,
            processor_time: None,
            flushes: None,
        }
    }
}
