//! Recurring credits: the operator's rule that refills accounts up to a cap, once in each period.

use serde::{Deserialize, Serialize};

use crate::access::account::Totals;
use crate::access::budget::BudgetReset;
use crate::clock::Day;
use crate::money::credits::{Credits, printed};
use crate::money::ledger::{LedgerKind, NewLedgerEntry};

/// How accounts are refilled.
///
/// At the beginning of each period, in UTC, every account that is not revoked gets `credits`, but at most enough to
/// reach `cap`. Held credits count towards the cap. An account created during a period is refilled from the next one
/// on. An account whose email address is not verified yet gets nothing.
///
/// ```
/// use metering_core::access::{BudgetReset, Totals};
/// use metering_core::money::Refill;
///
/// let refill = Refill { credits: "2".parse()?, every: BudgetReset::Monthly, cap: "3".parse()? };
/// let left = |balance: &str| Ok::<_, metering_core::money::DecimalError>(Totals { balance: balance.parse()?, ..Totals::default() });
/// assert_eq!(refill.amount(left("0.5")?), Some("2".parse()?));
/// assert_eq!(refill.amount(left("2.5")?), Some("0.5".parse()?));
/// assert_eq!(refill.amount(left("3")?), None);
/// # Ok::<(), metering_core::money::DecimalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refill {
    /// The maximum that an account gets in a period. Above zero.
    #[serde(deserialize_with = "printed")]
    pub credits: Credits,
    /// The period.
    pub every: BudgetReset,
    /// The balance that a refill does not exceed. Above zero.
    #[serde(deserialize_with = "printed")]
    pub cap: Credits,
}

/// The refill is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} must be above 0")]
pub struct RefillError(&'static str);

impl Refill {
    /// Checks its amounts.
    ///
    /// # Errors
    /// When one is not above zero.
    pub fn validate(&self) -> Result<(), RefillError> {
        let amounts = [("credits", self.credits), ("cap", self.cap)];
        match amounts.into_iter().find(|(_, amount)| !amount.is_positive()) {
            Some((name, _)) => Err(RefillError(name)),
            None => Ok(()),
        }
    }

    /// The credits that an account gets; `None` for none.
    #[must_use]
    pub fn amount(&self, totals: Totals) -> Option<Credits> {
        let room = totals.balance.checked_add(totals.held).and_then(|there| self.cap.checked_sub(there));
        // If the sum overflows, the account is either far above the cap or far below zero.
        let room = room.unwrap_or(if totals.balance.is_negative() { self.credits } else { Credits::ZERO });
        Some(self.credits.min(room)).filter(|amount| amount.is_positive())
    }

    /// The first day of the period that contains `day`: an account that was refilled on it, or later, has been refilled
    /// in this period.
    #[must_use]
    pub fn period(&self, day: Day) -> Day {
        self.every.first_day(day)
    }

    /// The entry that refills an account.
    pub(crate) fn entry(&self, amount: Credits, period: Day) -> NewLedgerEntry {
        NewLedgerEntry::new(LedgerKind::Refill, amount, format!("Refill for the period from {period}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn refill(credits: i64, cap: i64) -> Refill {
        let (credits, cap) = (Credits::from_atoms(credits), Credits::from_atoms(cap));
        Refill { credits, every: BudgetReset::Weekly, cap }
    }

    #[test]
    fn a_refill_reaches_the_cap_and_never_exceeds_it() {
        // credits, cap, balance, held, amount
        let table = [
            (10, 10, 0, 0, Some(10)),
            (10, 10, 4, 0, Some(6)),
            (10, 10, 4, 5, Some(1)),
            (10, 10, 4, 6, None),
            (10, 10, 10, 0, None),
            (10, 10, 99, 0, None),
            (10, 10, -3, 0, Some(10)),
            (10, 100, 0, 0, Some(10)),
            (10, 5, -90, 0, Some(10)),
            (10, 10, i64::MIN, 0, Some(10)),
            (10, 10, i64::MAX, 1, None),
        ];
        for (credits, cap, balance, held, amount) in table {
            let (balance, held) = (Credits::from_atoms(balance), Credits::from_atoms(held));
            let totals = Totals { balance, held, ..Totals::default() };
            let expected = amount.map(Credits::from_atoms);
            assert_eq!(refill(credits, cap).amount(totals), expected, "{credits} {cap} {balance} {held}");
        }
    }

    #[test]
    fn amounts_must_be_above_zero() {
        assert_eq!(refill(1, 1).validate(), Ok(()));
        for (credits, cap) in [(0, 1), (-1, 1), (1, 0), (1, -1)] {
            assert!(refill(credits, cap).validate().is_err(), "{credits} {cap}");
        }
    }
}
