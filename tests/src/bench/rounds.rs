//! Results of several rounds, and their median.

/// The results of all rounds, ordered by a rate (higher is better).
#[derive(Debug)]
pub(super) struct Rounds<T> {
    by_rising_rate: Vec<T>,
}

impl<T> Rounds<T> {
    /// # Panics
    /// If there is no round.
    pub(super) fn new(mut rounds: Vec<T>, rate: impl Fn(&T) -> f64) -> Self {
        assert!(!rounds.is_empty(), "there must be at least one round");
        rounds.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        Self { by_rising_rate: rounds }
    }

    /// The middle result; of an even number the slower of the two in the middle, so it is always one that was measured.
    pub(super) fn median(&self) -> &T {
        &self.by_rising_rate[(self.by_rising_rate.len() - 1) / 2]
    }

    pub(super) fn slowest(&self) -> &T {
        &self.by_rising_rate[0]
    }

    pub(super) fn fastest(&self) -> &T {
        &self.by_rising_rate[self.by_rising_rate.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_a_measured_value() {
        // rounds, slowest, median, fastest
        let table = [
            (vec![3.0], 3.0, 3.0, 3.0),
            (vec![3.0, 1.0, 2.0], 1.0, 2.0, 3.0),
            (vec![4.0, 1.0, 3.0, 2.0], 1.0, 2.0, 4.0),
            (vec![9.0, 9.0, 1.0, 1.0, 5.0], 1.0, 5.0, 9.0),
        ];
        for (rounds, slowest, median, fastest) in table {
            let rounds = Rounds::new(rounds, |rate| *rate);
            assert_eq!((*rounds.slowest(), *rounds.median(), *rounds.fastest()), (slowest, median, fastest));
        }
    }
}
