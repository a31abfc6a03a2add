//! Refills accounts: once in each period, up to a cap.

use super::EntryChanges;
use crate::access::account::Account;
use crate::clock::{Day, Timestamp};
use crate::money::refill::Refill;

/// The rule that refills an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefillChanges<K> {
    /// The account's row.
    pub row: K,
    /// The day it was processed. Store it even if the account gets nothing, or it would be processed again.
    pub refilled_on: Day,
    /// The entry to write; `None` for an account at the cap, or one whose email address is not verified yet.
    pub entry: Option<EntryChanges<K>>,
}

/// The progress of a period's refill. Backends store it with the rule, so each call continues where the last one
/// stopped. A new rule starts from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefillProgress {
    /// The first day of the period.
    pub period: Day,
    /// The row of the last account that was processed; `None` when all were.
    pub after: Option<i64>,
}

impl RefillProgress {
    /// The row after which to continue in a period; `None` if it is done, or if a later one has begun: then the
    /// caller's clock lags behind. Rows have positive numbers.
    #[must_use]
    pub const fn position(stored: Option<Self>, period: Day) -> Option<i64> {
        match stored {
            Some(stored) if stored.period.unix_days() > period.unix_days() => None,
            Some(stored) if stored.period.unix_days() == period.unix_days() => stored.after,
            _ => Some(0),
        }
    }

    /// The progress after a page of accounts, read with [`one_more_than`](crate::backend::one_more_than) the limit.
    /// Leaves the accounts of this page in `rows`.
    pub fn after_page<T>(period: Day, rows: &mut Vec<(i64, T)>, limit: u32) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        Self { period, after: rows.last().filter(|_| more).map(|(row, _)| *row) }
    }
}

/// Whether an account is still to be refilled in this period: it is not revoked, was created before the period, and was
/// not refilled in it or later.
#[must_use]
pub fn is_refill_due(account: &Account, refilled_on: Option<Day>, period: Day) -> bool {
    let since = refilled_on.unwrap_or_else(|| account.created_at.day());
    account.revoked_at.is_none() && since < period
}

/// Decides [`RefillStore::refill_accounts`](crate::store::RefillStore::refill_accounts) for one account that is due.
pub fn refill_account<K: Clone>(row: K, account: Account, refill: &Refill, now: Timestamp) -> RefillChanges<K> {
    // Anyone can open accounts for made-up addresses, so unverified ones get nothing.
    let amount = refill.amount(account.totals).filter(|_| account.email_status.is_holding());
    let entry = amount.map(|amount| refill.entry(amount, refill.period(now.day())));
    // An amount that would overflow is not granted: the account holds more than any cap.
    let entry = entry.and_then(|entry| EntryChanges::of((row.clone(), account), entry, now));
    RefillChanges { row, refilled_on: now.day(), entry }
}

#[cfg(test)]
mod tests {
    use super::super::scene::{NOW, account, revoked};
    use super::*;
    use crate::access::budget::BudgetReset;
    use crate::money::credits::Credits;

    #[test]
    fn an_account_is_due_once_in_a_period() {
        let period = BudgetReset::Monthly.first_day(NOW.day());
        let before = |days| Some(period.minus_days(days));
        let old = Account { created_at: period.minus_days(1).start(), ..account() };
        let new = Account { created_at: period.start(), ..account() };
        // account, refilled on, due
        let table = [
            (&old, None, true),
            (&new, None, false),
            (&old, before(31), true),
            (&new, before(31), true),
            (&old, before(0), false),
            (&old, Some(NOW.day()), false),
            (&revoked(), before(31), false),
        ];
        for (account, refilled_on, due) in table {
            assert_eq!(is_refill_due(account, refilled_on, period), due, "{refilled_on:?}");
        }
    }

    #[test]
    fn an_account_at_the_cap_has_had_its_turn() {
        let refill = |cap| Refill { credits: Credits::from_atoms(5), every: BudgetReset::Daily, cap };
        let balance = account().totals.balance;
        let full = refill_account(1, account(), &refill(balance), NOW);
        assert_eq!(full, RefillChanges { row: 1, refilled_on: NOW.day(), entry: None });
        let more = balance.checked_add(Credits::from_atoms(3)).unwrap();
        let entry = refill_account(1, account(), &refill(more), NOW).entry.unwrap();
        assert_eq!((entry.entry.amount.atoms(), entry.account.totals.balance), (3, more));
    }

    #[test]
    fn a_period_continues_where_it_stopped_and_never_goes_back() {
        let period = BudgetReset::Weekly.first_day(NOW.day());
        let period_ago = |days| Day::from_unix_days(period.unix_days() - days);
        let at = |days, after| Some(RefillProgress { period: period_ago(days), after });
        // stored, position
        let table = [
            (None, Some(0)),
            (at(7, None), Some(0)),
            (at(7, Some(3)), Some(0)),
            (at(0, Some(3)), Some(3)),
            (at(0, None), None),
            (at(-7, Some(3)), None),
            (at(-7, None), None),
        ];
        for (stored, position) in table {
            assert_eq!(RefillProgress::position(stored, period), position, "{stored:?}");
        }
    }

    #[test]
    fn a_page_ends_at_its_last_account_or_is_the_last() {
        let page = |count: i64| {
            let mut rows: Vec<_> = (1..=count).map(|row| (row * 10, ())).collect();
            let after = RefillProgress::after_page(NOW.day(), &mut rows, 2).after;
            (rows.len(), after)
        };
        assert_eq!([0, 1, 2, 3].map(page), [(0, None), (1, None), (2, None), (2, Some(20))]);
    }
}
