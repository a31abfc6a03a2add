//! Refills accounts: once in each period, up to a cap.

use super::EntryChanges;
use crate::access::account::Account;
use crate::clock::{Day, Timestamp};
use crate::money::refill::Refill;

/// What refills an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefillChanges<K> {
    /// The account's row.
    pub row: K,
    /// The period that it is refilled for. Store it, also if the account gets nothing: it has had its turn.
    pub period: Day,
    /// The entry to write; `None` for an account at the cap.
    pub entry: Option<EntryChanges<K>>,
}

/// Whether an account is still to be refilled for this period: it is not revoked, was created before the period, and was
/// not refilled for it or a later one.
#[must_use]
pub fn is_refill_due(account: &Account, refilled_for: Option<Day>, period: Day) -> bool {
    let since = refilled_for.unwrap_or_else(|| account.created_at.day());
    account.revoked_at.is_none() && since < period
}

/// Decides [`RefillStore::refill_accounts`](crate::store::RefillStore::refill_accounts) for one account that is due.
pub fn refill_account<K: Clone>(row: K, account: Account, refill: &Refill, now: Timestamp) -> RefillChanges<K> {
    let period = refill.period(now.day());
    let entry = refill.amount(account.totals).map(|amount| refill.entry(amount, period));
    // An amount that does not fit is not given: the account holds more than any cap.
    let entry = entry.and_then(|entry| EntryChanges::of((row.clone(), account), entry, now));
    RefillChanges { row, period, entry }
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
        // account, refilled for, due
        let table = [
            (&old, None, true),
            (&new, None, false),
            (&old, before(31), true),
            (&new, before(31), true),
            (&old, before(0), false),
            (&old, Some(NOW.day()), false),
            (&revoked(), before(31), false),
        ];
        for (account, refilled_for, due) in table {
            assert_eq!(is_refill_due(account, refilled_for, period), due, "{refilled_for:?}");
        }
    }

    #[test]
    fn an_account_at_the_cap_has_had_its_turn() {
        let refill = |cap| Refill { credits: Credits::from_atoms(5), every: BudgetReset::Daily, cap };
        let balance = account().totals.balance;
        let full = refill_account(1, account(), &refill(balance), NOW);
        assert_eq!(full, RefillChanges { row: 1, period: NOW.day(), entry: None });
        let more = balance.checked_add(Credits::from_atoms(3)).unwrap();
        let entry = refill_account(1, account(), &refill(more), NOW).entry.unwrap();
        assert_eq!((entry.entry.amount.atoms(), entry.account.totals.balance), (3, more));
    }
}
