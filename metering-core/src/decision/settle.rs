//! Settles credited payments. [`decide`](crate::payments::decide) chooses the step; this decides whether it can be
//! taken.

use super::Decided;
use super::entry::EntryChanges;
use crate::access::account::Account;
use crate::payments::payment::{PaymentRecord, SettlementEntry};
use crate::store::{PaymentSettled, SettlementChange, StoreError};

/// The rows read before a payment's settlement changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleFacts<K> {
    /// The record of the transaction.
    pub record: Option<PaymentRecord>,
    /// The account of [`SettlementChange::seen`], revoked or not, and its row.
    pub account: Option<(K, Account)>,
    /// The sum, in atoms, of the account's entries of kind
    /// [`LedgerKind::PURCHASES`](crate::money::LedgerKind::PURCHASES) for the payment. 0 without an account.
    pub purchased: i128,
}

/// A change of a payment's settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleChanges<K> {
    /// The record after the step. Its block and settlement may change.
    pub record: PaymentRecord,
    /// The ledger entry of the step, if it moves credits.
    pub posted: Option<EntryChanges<K>>,
    /// The account after the step.
    pub account: Account,
}

/// Decides [`PaymentStore::settle_payment`](crate::PaymentStore::settle_payment).
///
/// Refused, in this order:
/// - [`PaymentSettled::Stale`] when the record is no longer [`SettlementChange::seen`], or its settlement does not
///   allow the step ([`PaymentRecord::after`]);
/// - [`PaymentSettled::OutOfRange`] when the balance, a total or the entry would be out of range.
///
/// The entry is the one of [`PaymentRecord::entry_of`], even for a revoked account. The balance may go below zero.
///
/// # Errors
/// Between the two refusals, when the account does not exist.
pub fn settle_payment<K>(
    change: &SettlementChange,
    facts: SettleFacts<K>,
) -> Result<Decided<SettleChanges<K>, PaymentSettled>, StoreError> {
    let SettlementChange { seen, step, now } = change;
    let Some(record) = seen.after(step, *now).filter(|_| facts.record.as_ref() == Some(seen)) else {
        return Ok(Decided::Refused(PaymentSettled::Stale));
    };
    let Some((row, account)) = facts.account else {
        let tx = seen.payment.tx;
        return Err(StoreError::Corrupt(format!("payment {tx} belongs to an account that does not exist")));
    };
    let entry = match seen.entry_of(step, facts.purchased) {
        SettlementEntry::Nothing => return Ok(Decided::Accepted(SettleChanges { record, posted: None, account })),
        SettlementEntry::OutOfRange => return Ok(Decided::Refused(PaymentSettled::OutOfRange)),
        SettlementEntry::Entry(entry) => entry,
    };
    let Some(posted) = EntryChanges::of((row, account), entry, *now) else {
        return Ok(Decided::Refused(PaymentSettled::OutOfRange));
    };
    let account = posted.account.clone();
    Ok(Decided::Accepted(SettleChanges { record, posted: Some(posted), account }))
}

#[cfg(test)]
mod tests {
    use super::super::scene::{NOW, account, record, revoked};
    use super::*;
    use crate::payments::payment::{PaymentSettlement, PaymentUse, SettlementStep};

    fn seen() -> PaymentRecord {
        record(PaymentUse::Topup)
    }

    fn decide(step: SettlementStep, facts: SettleFacts<i64>) -> Option<Decided<SettleChanges<i64>, PaymentSettled>> {
        settle_payment(&SettlementChange { seen: seen(), step, now: NOW }, facts).ok()
    }

    #[test]
    fn the_first_reason_refuses() {
        use SettlementStep::{Finalize, Restore, Reverse};
        let block = seen().block().unwrap();
        let changed = PaymentRecord { settlement: PaymentSettlement::Final, ..seen() };
        let stale = || Some(Decided::Refused(PaymentSettled::Stale));
        let out_of_range = || Some(Decided::Refused(PaymentSettled::OutOfRange));
        let (most, too_many) = (-i128::from(i64::MAX), i128::from(i64::MAX) + 2);
        // step, record, account, purchased, decision (`None`: an error)
        let table = [
            (Reverse, None, None, too_many, stale()),
            (Reverse, Some(changed), None, too_many, stale()),
            (Restore(block), Some(seen()), None, too_many, stale()),
            (Reverse, Some(seen()), None, too_many, None),
            (Finalize, Some(seen()), None, too_many, None),
            (Reverse, Some(seen()), Some((1, account())), too_many, out_of_range()),
            // The entry fits, but the balance does not.
            (Reverse, Some(seen()), Some((1, account())), most, out_of_range()),
        ];
        for (step, record, account, purchased, decided) in table {
            let facts = SettleFacts { record, account, purchased };
            assert_eq!(decide(step.clone(), facts.clone()), decided, "{step:?} {facts:?}");
        }
    }

    #[test]
    fn a_step_changes_the_record_and_posts_its_entry() {
        for account in [account(), revoked()] {
            let facts = SettleFacts { record: Some(seen()), account: Some((1, account.clone())), purchased: 5 };
            let Some(Decided::Accepted(changes)) = decide(SettlementStep::Reverse, facts.clone()) else {
                panic!("nothing refuses it")
            };
            assert_eq!(changes.record.settlement, PaymentSettlement::Reversed { at: NOW });
            assert_eq!(changes.account.totals.balance.atoms(), account.totals.balance.atoms() - 5);
            assert_eq!(changes.posted.map(|posted| posted.account), Some(changes.account));
            let Some(Decided::Accepted(changes)) = decide(SettlementStep::Finalize, facts) else {
                panic!("nothing refuses it")
            };
            assert_eq!(changes.record.settlement, PaymentSettlement::Final);
            assert_eq!((changes.posted, changes.account), (None, account));
        }
    }
}
