//! How long a balance lasts at the recent pace. An estimate, so it is only made from enough days.
//!
//! The account page has the same rule, in `runway.js`, and its test has the same cases.

use metering_core::Day;
use serde::Deserialize;

use crate::client::money::amount::Amount;

/// The complete days that the pace is taken from.
const DAYS: i64 = 7;
/// An account needs this many complete days since its first call.
const ENOUGH: i64 = 2;

/// The fields read from the response to `GET /credits/usage/summary`.
#[derive(Debug, Deserialize)]
pub(super) struct Recent {
    pub(super) by_day: Vec<DayUsage>,
}

/// A UTC day.
#[derive(Debug, Deserialize)]
pub(super) struct DayUsage {
    pub(super) day: String,
    pub(super) credits_used: Amount,
}

/// How long a balance lasts; `None` if it is used up, or if there are too few days with calls to say.
pub(super) fn runway(balance: &Amount, by_day: &[DayUsage], today: Day) -> Option<String> {
    let left = balance.units();
    let age = |day: &DayUsage| {
        let used = day.credits_used.units();
        let date: Day = day.day.parse().ok()?;
        (used > 0).then_some((today.unix_days() - date.unix_days(), used))
    };
    let days: Vec<(i64, i128)> = by_day.iter().filter_map(age).collect();
    let oldest = days.iter().map(|(age, _)| *age).max()?;
    let sum = |ages: std::ops::RangeInclusive<i64>| {
        let used = days.iter().filter(|(age, _)| ages.contains(age)).map(|(_, used)| *used);
        used.fold(0, i128::saturating_add)
    };
    let (recent, now) = (sum(1..=DAYS), sum(0..=0));
    if left <= 0 || oldest < ENOUGH || (recent == 0 && now == 0) {
        return None;
    }
    // A day that has already cost more than the average is the better guess.
    let per_day = (recent / i128::from(oldest.min(DAYS))).max(now).max(1);
    Some(match left / per_day {
        0 => "less than a day".to_owned(),
        1 => "about 1 day".to_owned(),
        days @ ..60 => format!("about {days} days"),
        days @ ..730 => format!("about {} months", days / 30),
        _ => "more than two years".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_cases_of_the_account_page_have_the_same_answers() {
        let today: Day = "2026-11-21".parse().unwrap();
        // balance, age of a day and what it cost, answer
        let table: [(&str, &[(u32, &str)], Option<&str>); 12] = [
            ("0", &[(1, "1"), (5, "1")], None),
            ("-0.5", &[], None),
            ("10", &[], None),
            ("10", &[(0, "1")], None),
            ("10", &[(0, "1"), (1, "1")], None),
            ("10", &[(20, "1")], None),
            (
                "12.5",
                &[(0, "0.2"), (1, "1"), (2, "1"), (3, "1"), (4, "1"), (5, "1"), (6, "1"), (7, "1")],
                Some("about 12 days"),
            ),
            ("10", &[(2, "4")], Some("about 5 days")),
            ("10", &[(0, "10"), (7, "0.7")], Some("about 1 day")),
            ("1", &[(0, "3"), (3, "3")], Some("less than a day")),
            ("100", &[(7, "7")], Some("about 3 months")),
            ("100", &[(7, "0.0001388889")], Some("more than two years")),
        ];
        for (balance, days, expected) in table {
            let by_day = days
                .iter()
                .map(|(age, used)| DayUsage { day: today.minus_days(*age).to_string(), credits_used: amount(used) });
            let found = runway(&amount(balance), &by_day.collect::<Vec<_>>(), today);
            assert_eq!(found.as_deref(), expected, "{balance} {days:?}");
        }
    }
}
