//! Writes ledger entries of existing accounts.

use super::{Decided, active};
use crate::access::account::Account;
use crate::clock::Timestamp;
use crate::money::ledger::NewLedgerEntry;
use crate::store::Posted;

/// A ledger entry to write, and the account's new totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryChanges<K> {
    /// The account's row.
    pub row: K,
    /// The account after the entry. Only its totals change.
    pub account: Account,
    /// The entry.
    pub entry: NewLedgerEntry,
    /// The time of the entry.
    pub written_at: Timestamp,
}

impl<K> EntryChanges<K> {
    /// `None` when the balance or a total could not hold the amount.
    pub(super) fn of((row, account): (K, Account), entry: NewLedgerEntry, now: Timestamp) -> Option<Self> {
        let totals = entry.applied_to(account.totals)?;
        Some(Self { row, account: Account { totals, ..account }, entry, written_at: now })
    }
}

/// Decides [`Store::post_entry`](crate::Store::post_entry).
///
/// Refused, in this order: [`Posted::NoSuchAccount`], also for a revoked one; [`Posted::OutOfRange`].
pub fn post_entry<K>(
    account: Option<(K, Account)>,
    entry: NewLedgerEntry,
    now: Timestamp,
) -> Decided<EntryChanges<K>, Posted> {
    let Some(found) = active(account) else { return Decided::Refused(Posted::NoSuchAccount) };
    EntryChanges::of(found, entry, now).map_or(Decided::Refused(Posted::OutOfRange), Decided::Accepted)
}

#[cfg(test)]
mod tests {
    use super::super::scene::{NOW, account, entry, revoked};
    use super::*;

    #[test]
    fn the_first_reason_refuses() {
        // account, amount of the entry, refusal
        let table = [
            (None, i64::MAX, Posted::NoSuchAccount),
            (Some((1, revoked())), i64::MAX, Posted::NoSuchAccount),
            (Some((1, revoked())), 1, Posted::NoSuchAccount),
            (Some((1, account())), i64::MAX, Posted::OutOfRange),
        ];
        for (account, amount, refusal) in table {
            assert_eq!(post_entry(account, entry(amount), NOW), Decided::Refused(refusal));
        }
    }

    #[test]
    fn an_entry_changes_only_the_totals() {
        let before = account();
        let Decided::Accepted(changes) = post_entry(Some((7, before.clone())), entry(5), NOW) else {
            panic!("nothing refuses it")
        };
        assert_eq!(changes.account.totals, entry(5).applied_to(before.totals).unwrap());
        assert_eq!(Account { totals: before.totals, ..changes.account }, before);
        assert_eq!((changes.row, changes.entry, changes.written_at), (7, entry(5), NOW));
    }
}
