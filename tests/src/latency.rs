//! Latency samples and their percentiles.
//!
//! Every sample is kept in four bytes instead of being counted in buckets: a run has at most some millions of requests,
//! and exact percentiles need no explanation.

use std::fmt;
use std::time::Duration;

/// Latencies while they are being measured. Recording one pushes to a vector.
#[derive(Debug, Clone, Default)]
pub struct LatencySamples {
    micros: Vec<u32>,
}

impl LatencySamples {
    /// Adds a latency in whole microseconds, capped at 71 minutes.
    pub fn record(&mut self, latency: Duration) {
        self.micros.push(u32::try_from(latency.as_micros()).unwrap_or(u32::MAX));
    }

    /// Adds all samples of `other`.
    pub fn append(&mut self, mut other: Self) {
        self.micros.append(&mut other.micros);
    }

    /// Ends measuring.
    #[must_use]
    pub fn sorted(mut self) -> Latencies {
        self.micros.sort_unstable();
        Latencies { ascending_micros: self.micros }
    }
}

/// Measured latencies. Without samples, every statistic is `None`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Latencies {
    ascending_micros: Vec<u32>,
}

impl Latencies {
    /// The number of samples.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ascending_micros.len()
    }

    /// The lowest sample that at least `percent` % (1 to 100) of the samples do not exceed. This is the nearest rank,
    /// so it is always a measured value.
    ///
    /// # Panics
    /// If `percent` is not from 1 to 100.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Option<Duration> {
        assert!((1..=100).contains(&percent), "a percentile is from 1 to 100");
        let rank = (self.count() * percent).div_ceil(100);
        let micros = self.ascending_micros.get(rank.checked_sub(1)?)?;
        Some(Duration::from_micros(u64::from(*micros)))
    }

    /// The median.
    #[must_use]
    pub fn p50(&self) -> Option<Duration> {
        self.percentile(50)
    }

    /// The 99th percentile.
    #[must_use]
    pub fn p99(&self) -> Option<Duration> {
        self.percentile(99)
    }

    /// The longest latency.
    #[must_use]
    pub fn max(&self) -> Option<Duration> {
        self.percentile(100)
    }
}

impl fmt::Debug for Latencies {
    /// Shows statistics instead of a million samples.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latencies")
            .field("count", &self.count())
            .field("p50", &self.p50())
            .field("p99", &self.p99())
            .field("max", &self.max())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(micros: impl IntoIterator<Item = u64>) -> Latencies {
        let mut samples = LatencySamples::default();
        micros.into_iter().for_each(|micros| samples.record(Duration::from_micros(micros)));
        samples.sorted()
    }

    #[test]
    fn percentiles_use_the_nearest_rank() {
        let hundred: Vec<u64> = (1..=100).rev().collect();
        let thousand: Vec<u64> = (1..=1_000).collect();
        // samples, percent, latency in microseconds
        let table = [
            (vec![7], 1, 7),
            (vec![7], 50, 7),
            (vec![7], 100, 7),
            (vec![2, 1], 50, 1),
            (vec![2, 1], 51, 2),
            (vec![3, 1, 2], 50, 2),
            (hundred.clone(), 1, 1),
            (hundred.clone(), 50, 50),
            (hundred.clone(), 99, 99),
            (hundred, 100, 100),
            (thousand, 99, 990),
        ];
        for (samples, percent, micros) in table {
            let found = latencies(samples.clone()).percentile(percent);
            assert_eq!(found, Some(Duration::from_micros(micros)), "{percent} % of {samples:?}");
        }
    }

    #[test]
    fn no_samples_have_no_percentiles() {
        let none = latencies([]);
        assert_eq!((none.count(), none.p50(), none.p99(), none.max()), (0, None, None, None));
    }

    #[test]
    fn oversized_latency_is_capped() {
        let endless = latencies([1, u64::MAX]);
        assert_eq!(endless.max(), Some(Duration::from_micros(u64::from(u32::MAX))));
        assert_eq!(endless.p50(), Some(Duration::from_micros(1)));
    }

    #[test]
    fn samples_of_several_connections_are_merged() {
        let (mut all, mut other) = (LatencySamples::default(), LatencySamples::default());
        all.record(Duration::from_micros(5));
        other.record(Duration::from_micros(1));
        other.record(Duration::from_micros(9));
        all.append(other);
        assert_eq!(all.sorted(), latencies([1, 5, 9]));
    }
}
