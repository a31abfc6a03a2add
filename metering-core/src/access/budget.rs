//! Budgets: how many credits may be spent with a key, in all or in each period.

use std::time::Duration;

use crate::clock::{Day, Timestamp};
use crate::money::credits::Credits;
use crate::named_enum::named_enum;
use crate::text_traits::text_traits;

named_enum! {
    /// When a budget starts again. All periods are in UTC.
    pub enum BudgetReset {
        /// At midnight.
        Daily = "daily",
        /// On Monday (ISO 8601).
        Weekly = "weekly",
        /// On the first day of the month.
        Monthly = "monthly",
    }
    parsed as BudgetResetError
}

/// The text names no period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be daily, weekly or monthly")]
pub struct BudgetResetError;

impl BudgetReset {
    /// The first day of the period that contains `day`.
    ///
    /// ```
    /// use metering_core::Day;
    /// use metering_core::access::BudgetReset;
    ///
    /// let sunday: Day = "2026-11-22".parse()?;
    /// let first = BudgetReset::ALL.map(|reset| reset.first_day(sunday).to_string());
    /// assert_eq!(first, ["2026-11-22", "2026-11-16", "2026-11-01"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn first_day(self, day: Day) -> Day {
        let days = day.unix_days();
        match self {
            Self::Daily => day,
            // 1 January 1970 was a Thursday, three days after a Monday.
            Self::Weekly => Day::from_unix_days(days - (days + 3).rem_euclid(7)),
            Self::Monthly => Day::from_unix_days(days - i64::from(day.day_of_month()) + 1),
        }
    }

    /// The first day of the period after that of `day`.
    #[must_use]
    pub fn next(self, day: Day) -> Day {
        let length = match self {
            Self::Daily => 1,
            Self::Weekly => 7,
            // Every month falls in the next month, never in a later one.
            Self::Monthly => 32,
        };
        let first = self.first_day(day);
        self.first_day(Day::from_unix_days(first.unix_days() + length))
    }
}

text_traits!(BudgetReset: Deserialize);

/// How many credits may be spent with a key and its child keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The credits of each period, or of all time. Zero or more.
    pub limit: Credits,
    /// When it starts again; `None` for never.
    pub reset: Option<BudgetReset>,
}

impl Budget {
    /// The first day that counts, for a request of this day.
    #[must_use]
    pub fn first_day(&self, day: Day) -> Day {
        self.reset.map_or(Day::from_unix_days(0), |reset| reset.first_day(day))
    }

    /// When the budget in force at `now` resets; `None` for never.
    #[must_use]
    pub fn resets_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.reset.map(|reset| reset.next(now.day()).start())
    }
}

/// Credits spent in one period of a budget, minus refunds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// The first day of the period.
    pub since: Day,
    /// Credits charged on its days, minus those refunded.
    pub amount: Credits,
}

impl Default for Spent {
    fn default() -> Self {
        Self { since: Day::from_unix_days(0), amount: Credits::ZERO }
    }
}

impl Spent {
    /// How far a clock may lag behind the newest reading and still count in its period. A larger step back means that
    /// the newest reading was wrong; it must not block the key until that period comes.
    const LAG: Duration = Duration::from_secs(24 * 60 * 60);

    /// Credits spent in the period of `now`. Just after a period begins, a clock that lags behind counts in it, so
    /// small clock differences never give a key the same period twice.
    #[must_use]
    pub fn at(self, budget: &Budget, now: Timestamp) -> Self {
        let since = budget.first_day(now.day());
        let stepped_back = now.saturating_add(Self::LAG) < self.since.start();
        if since > self.since || (since < self.since && stepped_back) {
            Self { since, amount: Credits::ZERO }
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_begin_and_end_where_the_calendar_says() {
        // day, first day of its week and month, first day of the next week and month
        let table = [
            ("2026-11-22", ["2026-11-16", "2026-11-01"], ["2026-11-23", "2026-12-01"]),
            ("2026-11-23", ["2026-11-23", "2026-11-01"], ["2026-11-30", "2026-12-01"]),
            ("2027-01-01", ["2026-12-28", "2027-01-01"], ["2027-01-04", "2027-02-01"]),
            ("2027-01-31", ["2027-01-25", "2027-01-01"], ["2027-02-01", "2027-02-01"]),
            ("2028-02-29", ["2028-02-28", "2028-02-01"], ["2028-03-06", "2028-03-01"]),
            ("1969-12-28", ["1969-12-22", "1969-12-01"], ["1969-12-29", "1970-01-01"]),
        ];
        for (day, first, next) in table {
            let day: Day = day.parse().unwrap();
            let found = [BudgetReset::Weekly, BudgetReset::Monthly];
            assert_eq!(found.map(|reset| reset.first_day(day).to_string()), first, "{day}");
            assert_eq!(found.map(|reset| reset.next(day).to_string()), next, "{day}");
        }
    }

    #[test]
    fn a_new_period_starts_at_zero_and_a_lagging_clock_does_not_go_back() {
        let budget = Budget { limit: Credits::from_atoms(10), reset: Some(BudgetReset::Daily) };
        let (midnight, second) = (Day::from_unix_days(101).start(), Duration::from_secs(1));
        let spent = |days, atoms| Spent { since: Day::from_unix_days(days), amount: Credits::from_atoms(atoms) };
        let day = 24 * 60 * 60 * second;
        let table = [
            (midnight, spent(101, 7)),
            (midnight.saturating_sub(second), spent(101, 7)),
            (midnight.saturating_sub(Spent::LAG), spent(101, 7)),
            (midnight.saturating_sub(Spent::LAG + second), spent(99, 0)),
            (midnight.saturating_add(day - second), spent(101, 7)),
            (midnight.saturating_add(day), spent(102, 0)),
        ];
        for (now, expected) in table {
            assert_eq!(spent(101, 7).at(&budget, now), expected, "{now}");
        }
        let total = Budget { reset: None, ..budget };
        assert_eq!(spent(0, 7).at(&total, midnight), spent(0, 7));
    }
}
