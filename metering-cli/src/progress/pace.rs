//! How fast a part of a run is now. The average since it began would keep promising the old speed after a run slowed
//! down, so older readings count less and less.

use std::time::Duration;

/// The weight of a reading falls to about a third in this time. What counts is then, on average, as old as in a window of
/// one minute.
const MEMORY: Duration = Duration::from_secs(30);
/// Units are counted in millionths, because time is counted in microseconds.
const MILLIONTHS: u128 = 1_000_000;

/// Work and time so far, both with less weight the older they are. Their ratio is the rate: first the average, later that
/// of about the last minute.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    done: u64,
    elapsed: Duration,
    millionths: u128,
    microseconds: u128,
}

impl Pace {
    /// Adds a reading: the units done, and the time since the part began.
    pub(super) fn read(&mut self, done: u64, elapsed: Duration) {
        let passed = elapsed.saturating_sub(self.elapsed).as_micros();
        let counted = u128::from(done.saturating_sub(self.done)) * MILLIONTHS;
        let memory = MEMORY.as_micros();
        // A sum is of at most 2^64 units, so the product fits.
        let aged = |sum: u128| sum * memory / (memory + passed);
        *self = Self {
            done,
            elapsed,
            millionths: aged(self.millionths) + counted,
            microseconds: aged(self.microseconds) + passed,
        };
    }

    /// Units per second.
    pub(super) fn per_second(&self) -> u128 {
        self.millionths.checked_div(self.microseconds).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_a_run_that_changes_its_speed() {
        let mut pace = Pace::default();
        assert_eq!(pace.per_second(), 0);
        let (mut done, mut seconds) = (0, 0);
        // units per second, for how many seconds, the rate after them
        for (speed, lasts, expected) in
            [(1_000, 10, 1_000), (1_000, 590, 1_000), (10, 60, 186), (10, 240, 10), (1_000, 60, 823), (0, 600, 0)]
        {
            for _ in 0..lasts / 10 {
                seconds += 10;
                done += speed * 10;
                pace.read(done, Duration::from_secs(seconds));
            }
            assert_eq!(pace.per_second(), expected, "after {seconds} s");
        }
    }

    #[test]
    fn the_largest_counts_do_not_overflow() {
        let mut pace = Pace::default();
        pace.read(u64::MAX, Duration::from_secs(1));
        pace.read(u64::MAX, Duration::from_secs(2));
        assert!(pace.per_second() > 0);
    }
}
