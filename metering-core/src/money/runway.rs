//! How long a balance lasts at the recent pace. An estimate, so it is only made from enough days. The pages have the same
//! rule in `runway.js`; both are tested with `runway.json`.

use std::fmt;

use crate::clock::Day;
use crate::money::credits::Credits;

/// How long a balance lasts.
///
/// ```
/// use metering_core::Day;
/// use metering_core::money::Runway;
///
/// let today: Day = "2026-11-25".parse()?;
/// let used = [1, 2, 3].map(|ago| (today.minus_days(ago), "2".parse().expect("an amount")));
/// let runway = Runway::of("10".parse()?, used, today);
/// assert_eq!(runway.to_string(), "About 5 days at this pace.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runway {
    /// No credits are left.
    UsedUp,
    /// There were no calls in the days that are known.
    NoCalls,
    /// The first call was today or yesterday.
    TooEarly,
    /// There were no calls in the days that the pace is taken from, but before.
    NoRecentCalls,
    /// The approximate number of days; 0 for less than one.
    Days(u64),
}

impl Runway {
    /// How many days the pace is taken from, without today.
    const PACE_DAYS: i64 = 7;
    /// An account needs this many complete days since its first call.
    const ENOUGH_DAYS: i64 = 2;

    /// How long `balance` lasts, given the credits used on each day until `today`. Pass at least the last two weeks.
    #[must_use]
    pub fn of(balance: Credits, used: impl IntoIterator<Item = (Day, Credits)>, today: Day) -> Self {
        if !balance.is_positive() {
            return Self::UsedUp;
        }
        let (mut oldest, mut recent, mut of_today) = (None, 0_i128, 0_i128);
        for (day, used) in used.into_iter().filter(|(_, used)| used.is_positive()) {
            let age = today.unix_days().saturating_sub(day.unix_days()).max(0);
            oldest = oldest.max(Some(age));
            match age {
                0 => of_today += i128::from(used.atoms()),
                1..=Self::PACE_DAYS => recent += i128::from(used.atoms()),
                _ => {}
            }
        }
        let Some(oldest) = oldest else { return Self::NoCalls };
        if oldest < Self::ENOUGH_DAYS {
            return Self::TooEarly;
        }
        if recent == 0 && of_today == 0 {
            return Self::NoRecentCalls;
        }
        let complete = i128::from(oldest.min(Self::PACE_DAYS));
        // A day that has already cost more than the average is the better guess.
        let per_day = (recent / complete).max(of_today).max(1);
        Self::Days(u64::try_from(i128::from(balance.atoms()) / per_day).unwrap_or(u64::MAX))
    }
}

/// A sentence for people.
impl fmt::Display for Runway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UsedUp => f.write_str("Used up."),
            Self::NoCalls => f.write_str("No calls yet, so no estimate of how long this lasts."),
            Self::TooEarly => {
                f.write_str("Too early to say how long this lasts: the first calls are from today or yesterday.")
            }
            Self::NoRecentCalls => {
                write!(f, "No calls in the last {} days, so no estimate of how long this lasts.", Self::PACE_DAYS)
            }
            Self::Days(0) => f.write_str("Less than a day at this pace."),
            Self::Days(1) => f.write_str("About 1 day at this pace."),
            Self::Days(days @ 2..60) => write!(f, "About {days} days at this pace."),
            Self::Days(days @ 60..730) => write!(f, "About {} months at this pace.", days / 30),
            Self::Days(730..) => f.write_str("More than two years at this pace."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Day = Day::from_unix_days(20_000);

    /// Cases: the balance, the usage by age in days, and the expected text. `runway.js` is tested with the same file.
    const CASES: &str = include_str!("runway.json");

    #[test]
    fn a_runway_is_the_balance_divided_by_the_pace_in_round_words() {
        type Case = (String, Vec<(u32, String)>, String);
        let cases: Vec<Case> = serde_json::from_str(CASES).unwrap();
        assert!(cases.len() > 10, "{cases:?}");
        for (balance, used, expected) in cases {
            let amount = |text: &str| Credits::from_printed(text).unwrap();
            let days = used.iter().map(|(ago, used)| (TODAY.minus_days(*ago), amount(used)));
            let runway = Runway::of(amount(&balance), days, TODAY);
            assert_eq!(runway.to_string(), expected, "{balance} {used:?}");
        }
    }
}
