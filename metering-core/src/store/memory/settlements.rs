use crate::decision::{self, Decided, SettleChanges, SettleFacts};
use crate::money::ledger::LedgerKind;
use crate::payments::payment::{PaymentRecord, PaymentSettlement};
use crate::store::{PaymentSettled, SettlementChange, StoreError};

use super::state::State;

impl State {
    pub(super) fn settle_payment(&mut self, change: &SettlementChange) -> Result<PaymentSettled, StoreError> {
        let facts = SettleFacts {
            record: self.payments.record_of(&change.seen.payment.tx).cloned(),
            account: self.found(&change.seen.account),
            purchased: self.bought(&change.seen),
        };
        let SettleChanges { record, posted, account } = match decision::settle_payment(change, facts)? {
            Decided::Accepted(changes) => changes,
            Decided::Refused(refusal) => return Ok(refusal),
        };
        if let Some(posted) = posted {
            self.write_entry(posted);
        }
        self.authorizations.payment_took(record.payment.tx, &change.step);
        self.payments.update_record(record);
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
