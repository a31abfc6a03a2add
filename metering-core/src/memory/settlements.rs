use crate::ledger::LedgerKind;
use crate::payment::{PaymentRecord, PaymentSettlement, SettlementEntry};
use crate::store::{PaymentSettled, Posted, SettlementChange, StoreError};

use super::state::State;

impl State {
    pub(super) fn settle_payment(&mut self, change: &SettlementChange) -> Result<PaymentSettled, StoreError> {
        let SettlementChange { seen, step, now } = change;
        let Some(index) = self.payments.used.get(&seen.payment.tx).copied() else { return Ok(PaymentSettled::Stale) };
        let Some(after) = seen.after(step, *now).filter(|_| self.payments.payments[index] == *seen) else {
            return Ok(PaymentSettled::Stale);
        };
        let account = match seen.entry_of(step, self.bought(seen)) {
            SettlementEntry::OutOfRange => return Ok(PaymentSettled::OutOfRange),
            SettlementEntry::Entry(entry) => match self.apply_entry(&seen.account, entry, *now) {
                Posted::Account(account) => account,
                Posted::OutOfRange => return Ok(PaymentSettled::OutOfRange),
                Posted::NoSuchAccount => return Err(no_account(seen)),
            },
            SettlementEntry::Nothing => self.record(&seen.account).ok_or_else(|| no_account(seen))?.account.clone(),
        };
        self.payments.payments[index] = after;
        Ok(PaymentSettled::Changed(account))
    }

    /// The atoms that a payment's purchase added to its account.
    fn bought(&self, record: &PaymentRecord) -> i128 {
        self.sum_of(record, &LedgerKind::PURCHASES)
    }

    fn sum_of(&self, record: &PaymentRecord, kinds: &[LedgerKind]) -> i128 {
        let named = self.ledger.iter().filter(|entry| {
            entry.account == record.account
                && kinds.contains(&entry.kind)
                && entry.payment.as_ref().is_some_and(|payment| payment.tx == record.payment.tx)
        });
        named.map(|entry| i128::from(entry.amount.atoms())).sum()
    }

    /// Checks that each payment's ledger entries match its settlement.
    pub(super) fn verify_settlements(&self) -> Result<(), StoreError> {
        for record in &self.payments.payments {
            let taken_back = match record.settlement {
                PaymentSettlement::Reversed { .. } => -self.bought(record),
                PaymentSettlement::Unsettled | PaymentSettlement::Final => 0,
            };
            if self.sum_of(record, &LedgerKind::SETTLEMENTS) != taken_back {
                let tx = record.payment.tx;
                return Err(StoreError::Corrupt(format!("the ledger does not match the settlement of payment {tx}")));
            }
        }
        Ok(())
    }
}

fn no_account(record: &PaymentRecord) -> StoreError {
    StoreError::Corrupt(format!("payment {} belongs to an account that does not exist", record.payment.tx))
}
