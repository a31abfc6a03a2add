//! Latencies and their percentiles.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest latency that is recorded exactly, in microseconds: an hour.
const MAX_MICROS: u64 = 60 * 60 * 1_000_000;
/// Latencies are exact to a thousandth.
const DIGITS: u8 = 3;

/// Measured latencies. Without any, every statistic is `None`.
#[derive(Clone, PartialEq)]
pub struct Latencies {
    micros: Histogram<u64>,
}

impl Latencies {
    /// Adds a latency.
    pub fn record(&mut self, latency: Duration) {
        self.micros.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds all latencies of `other`.
    pub fn append(&mut self, other: &Self) {
        self.micros.add(&other.micros).expect("all histograms have the same bounds");
    }

    /// The number of latencies.
    #[must_use]
    pub fn count(&self) -> usize {
        usize::try_from(self.micros.len()).unwrap_or(usize::MAX)
    }

    /// The shortest latency that at least `percent` % (1 to 100) of all do not exceed.
    ///
    /// # Panics
    /// If `percent` is not from 1 to 100.
    #[must_use]
    #[expect(clippy::float_arithmetic, reason = "a figure for people, not money")]
    pub fn percentile(&self, percent: u8) -> Option<Duration> {
        assert!((1..=100).contains(&percent), "a percentile is from 1 to 100");
        let micros = self.micros.value_at_quantile(f64::from(percent) / 100.0);
        (self.count() > 0).then(|| Duration::from_micros(self.micros.lowest_equivalent(micros)))
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

impl Default for Latencies {
    fn default() -> Self {
        Self { micros: Histogram::new_with_max(MAX_MICROS, DIGITS).expect("the bounds are valid") }
    }
}

impl fmt::Debug for Latencies {
    /// Shows statistics instead of thousands of counts.
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
        let mut latencies = Latencies::default();
        micros.into_iter().for_each(|micros| latencies.record(Duration::from_micros(micros)));
        latencies
    }

    #[test]
    fn percentiles_use_the_nearest_rank() {
        let hundred: Vec<u64> = (1..=100).rev().collect();
        let thousand: Vec<u64> = (1..=1_000).collect();
        // latencies, percent, latency in microseconds
        let table = [
            (vec![7], 1, 7),
            (vec![7], 50, 7),
            (vec![7], 100, 7),
            (vec![0, 0], 50, 0),
            (vec![2, 1], 50, 1),
            (vec![2, 1], 51, 2),
            (vec![3, 1, 2], 50, 2),
            (hundred.clone(), 1, 1),
            (hundred.clone(), 50, 50),
            (hundred.clone(), 99, 99),
            (hundred, 100, 100),
            (thousand, 99, 990),
        ];
        for (micros, percent, expected) in table {
            let found = latencies(micros.clone()).percentile(percent);
            assert_eq!(found, Some(Duration::from_micros(expected)), "{percent} % of {micros:?}");
        }
    }

    #[test]
    fn long_latencies_are_exact_to_a_thousandth() {
        for micros in [2_049, 12_345, 999_999, 59 * 60 * 1_000_000] {
            let found = u64::try_from(latencies([micros]).max().unwrap().as_micros()).unwrap();
            assert!(found <= micros && micros - found <= micros / 1_000, "{micros}: {found}");
        }
    }

    #[test]
    fn no_latencies_have_no_percentiles() {
        let none = latencies([]);
        assert_eq!((none.count(), none.p50(), none.p99(), none.max()), (0, None, None, None));
    }

    #[test]
    fn oversized_latency_is_capped() {
        let endless = latencies([1, u64::MAX]);
        assert!(endless.max().unwrap() >= Duration::from_secs(59 * 60));
        assert_eq!(endless.p50(), Some(Duration::from_micros(1)));
    }

    #[test]
    fn latencies_of_several_connections_are_merged() {
        let (mut all, other) = (latencies([5]), latencies([1, 9]));
        all.append(&other);
        assert_eq!(all, latencies([1, 5, 9]));
    }
}
