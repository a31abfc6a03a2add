//! Adds up a key's usage from its daily totals.

use super::credits;
use crate::access::budget::BudgetReset;
use crate::access::issued_key::KeyUsage;
use crate::clock::Day;
use crate::store::StoreError;

/// The sums of one key's daily totals.
#[derive(Debug, Clone)]
pub struct KeyUsageSums {
    today: Day,
    /// Atoms, in the order of [`KeyUsage`]. 128 bits wide, so charges and refunds can be added in any order.
    sums: [i128; 4],
    last_used: Option<Day>,
}

impl KeyUsageSums {
    /// The sums as of a day.
    #[must_use]
    pub const fn new(today: Day) -> Self {
        Self { today, sums: [0; 4], last_used: None }
    }

    /// Adds a daily total, or a part of one. A day after today counts towards the total only.
    pub fn add(&mut self, day: Day, calls: u64, atoms: i128) {
        let is_current = |reset: BudgetReset| (reset.first_day(self.today)..=self.today).contains(&day);
        let [daily, weekly, monthly] = BudgetReset::ALL.map(is_current);
        for (sum, counts) in self.sums.iter_mut().zip([true, daily, weekly, monthly]) {
            *sum += if counts { atoms } else { 0 };
        }
        if calls > 0 {
            self.last_used = self.last_used.max(Some(day));
        }
    }

    /// The usage.
    ///
    /// # Errors
    /// When a sum is more than [`Credits`](crate::Credits) can hold.
    pub fn usage(&self) -> Result<KeyUsage, StoreError> {
        let [total, daily, weekly, monthly] = self.sums;
        Ok(KeyUsage {
            total: credits(total)?,
            daily: credits(daily)?,
            weekly: credits(weekly)?,
            monthly: credits(monthly)?,
            last_used: self.last_used,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::credits::Credits;

    #[test]
    fn a_total_counts_in_the_periods_that_have_its_day() {
        let today: Day = "2026-11-25".parse().unwrap(); // a Wednesday
        let mut sums = KeyUsageSums::new(today);
        let days = ["2026-11-25", "2026-11-23", "2026-11-22", "2026-11-01", "2026-10-31", "2026-11-26"];
        for (day, atoms) in days.into_iter().zip([1, 10, 100, 1_000, 10_000, 100_000]) {
            sums.add(day.parse().unwrap(), 1, atoms);
        }
        sums.add("2026-12-24".parse().unwrap(), 0, 0);
        let usage = sums.usage().unwrap();
        let expected = [111_111, 1, 11, 1_111].map(Credits::from_atoms);
        assert_eq!([usage.total, usage.daily, usage.weekly, usage.monthly], expected);
        assert_eq!(usage.last_used, "2026-11-26".parse().ok());
    }
}
