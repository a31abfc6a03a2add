//! The price version in force at each time.

use crate::clock::{Day, Timestamp};
use crate::prices::version::PriceVersion;

/// Price versions in the order of their numbers.
///
/// ```
/// use metering_core::Timestamp;
/// use metering_core::prices::{NewPriceVersion, PriceHistory, PriceNumber};
///
/// let at = Timestamp::from_unix_millis;
/// let version = |number, since| {
///     let new = NewPriceVersion { catalogue: "{}".into(), since: at(since), recorded_at: at(0), applied_by: None };
///     new.numbered(PriceNumber(number))
/// };
/// let history = PriceHistory::new(vec![version(1, 0), version(2, 5_000)]);
/// assert_eq!(history.in_force(at(4_999)).map(|version| version.number), Some(PriceNumber(1)));
/// assert_eq!(history.in_force(at(5_000)).map(|version| version.number), Some(PriceNumber(2)));
/// assert_eq!(history.next_after(at(0)).map(|version| version.number), Some(PriceNumber(2)));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceHistory(Vec<PriceVersion>);

impl PriceHistory {
    /// The history with these versions, in any order.
    #[must_use]
    pub fn new(mut versions: Vec<PriceVersion>) -> Self {
        versions.sort_unstable_by_key(|version| version.number);
        Self(versions)
    }

    /// All versions, in the order of their numbers, cancelled ones too.
    #[must_use]
    pub fn versions(&self) -> &[PriceVersion] {
        &self.0
    }

    /// The version in force at `at`: the last to take effect. If several have the same time, the last recorded.
    #[must_use]
    pub fn in_force(&self, at: Timestamp) -> Option<&PriceVersion> {
        self.effective().filter(|version| version.since <= at).max_by_key(|version| (version.since, version.number))
    }

    /// The next version that takes effect after `at`.
    #[must_use]
    pub fn next_after(&self, at: Timestamp) -> Option<&PriceVersion> {
        let later = self.effective().filter(|version| version.since > at);
        // If several have the same time, the one that will be in force.
        later.min_by_key(|version| (version.since, std::cmp::Reverse(version.number)))
    }

    /// The versions in force on a UTC day, in the order in which they took effect.
    #[must_use]
    pub fn on_day(&self, day: Day) -> Vec<&PriceVersion> {
        let start = day.start();
        let within = self.effective().filter(|version| version.since > start && version.since.day() == day);
        let mut versions: Vec<&PriceVersion> = self.in_force(start).into_iter().chain(within).collect();
        versions.sort_unstable_by_key(|version| (version.since, version.number));
        versions
    }

    fn effective(&self) -> impl Iterator<Item = &PriceVersion> {
        self.0.iter().filter(|version| version.cancelled_at.is_none())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::prices::number::PriceNumber;
    use crate::prices::version::NewPriceVersion;

    const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);
    const HOUR: Duration = Duration::from_secs(3_600);

    fn version(number: u32, since: Timestamp) -> PriceVersion {
        let new = NewPriceVersion { catalogue: "{}".into(), since, recorded_at: NOON, applied_by: None };
        new.numbered(PriceNumber(number))
    }

    fn numbers<'a>(versions: impl IntoIterator<Item = &'a PriceVersion>) -> Vec<u32> {
        versions.into_iter().map(|version| version.number.0).collect()
    }

    #[test]
    fn a_version_is_in_force_from_its_time_to_that_of_the_next() {
        let at = |hours| NOON.saturating_add(HOUR * hours);
        let cancelled = PriceVersion { cancelled_at: Some(NOON), ..version(4, at(2)) };
        let history = PriceHistory::new(vec![
            version(3, at(4)),
            version(1, NOON),
            version(2, at(3)),
            cancelled,
            version(5, at(3)),
        ]);
        assert_eq!(numbers(history.versions()), [1, 2, 3, 4, 5]);
        // hours after noon, in force, next
        let table = [(0, Some(1), Some(5)), (2, Some(1), Some(5)), (3, Some(5), Some(3)), (4, Some(3), None)];
        for (hours, in_force, next) in table {
            assert_eq!(history.in_force(at(hours)).map(|version| version.number.0), in_force, "{hours}");
            assert_eq!(history.next_after(at(hours)).map(|version| version.number.0), next, "{hours}");
        }
        assert_eq!(history.in_force(NOON.saturating_sub(HOUR)), None);
        assert_eq!(PriceHistory::default().next_after(NOON), None);
    }

    #[test]
    fn a_day_has_the_version_of_its_start_and_those_that_took_effect_in_it() {
        let day = NOON.day();
        let at = |days: u32, hours| NOON.saturating_add(HOUR * (24 * days + hours));
        let midnight = Day::from_unix_days(day.unix_days() + 2).start();
        let history = PriceHistory::new(vec![version(1, NOON), version(2, at(0, 1)), version(3, midnight)]);
        // days later, numbers
        let table: [(i64, &[u32]); 5] = [(-1, &[]), (0, &[1, 2]), (1, &[2]), (2, &[3]), (30, &[3])];
        for (later, expected) in table {
            let day = Day::from_unix_days(day.unix_days() + later);
            assert_eq!(numbers(history.on_day(day)), expected, "{later}");
        }
    }
}
