//! Payments that counted, and the wallets they linked, in the model.

use crate::account::AccountId;
use crate::address::Address;
use crate::clock::Timestamp;
use crate::payment::{Payment, PaymentRecord, PaymentUse};
use crate::store::{PaymentCredit, PaymentCredited, Posted, QuotePrecedence};
use crate::transaction::TxRef;

use super::Model;

/// A payment that counted.
#[derive(Debug)]
pub(super) struct Used {
    pub(super) payment: Payment,
    /// The number of the account that it counted for.
    pub(super) owner: usize,
    pub(super) used_as: PaymentUse,
    pub(super) plan_id: Option<String>,
    pub(super) at: Timestamp,
    /// Whether its payer was linked to the account by it.
    pub(super) links: bool,
}

impl Model {
    pub(super) fn is_used(&self, tx: TxRef) -> bool {
        self.used.iter().any(|used| used.payment.tx == tx)
    }

    /// The records of all payments, in the order of their writing.
    pub(in crate::conformance) fn records(&self) -> Vec<PaymentRecord> {
        let record = |used: &Used| PaymentRecord {
            payment: used.payment.clone(),
            account: self.id(used.owner),
            used_as: used.used_as,
            plan_id: used.plan_id.clone(),
            recorded_at: used.at,
        };
        self.used.iter().map(record).collect()
    }

    pub(in crate::conformance) fn credit(&mut self, credit: &PaymentCredit) -> PaymentCredited {
        let asking = |number: &usize| self.id(*number) == credit.account && self.owners[*number].is_live();
        let Some(number) = (0..self.owners.len()).find(asking) else { return PaymentCredited::NoSuchAccount };
        let known = self.records().into_iter().find(|record| record.payment.tx == credit.payment.tx);
        if let Some(record) = known {
            if record.account != credit.account || record.used_as == PaymentUse::PaySignup {
                return PaymentCredited::TxUsed;
            }
            return PaymentCredited::Repeated(self.owners[number].account(), Box::new(record));
        }
        if credit.quotes == QuotePrecedence::Quote && !self.quotes_paid_by(&credit.payment).is_empty() {
            return PaymentCredited::BelongsToQuote;
        }
        match self.post(number, &credit.entry, credit.now) {
            Posted::NoSuchAccount => PaymentCredited::NoSuchAccount,
            Posted::OutOfRange => PaymentCredited::OutOfRange,
            Posted::Account(account) => {
                self.used.push(Used {
                    payment: credit.payment.clone(),
                    owner: number,
                    used_as: credit.used_as,
                    plan_id: credit.entry.payment.as_ref().and_then(|paid| paid.plan_id.clone()),
                    at: credit.now,
                    links: credit.link_payer,
                });
                PaymentCredited::Account(account)
            }
        }
    }

    /// The live accounts that a wallet is linked to, by the first payment that linked each.
    pub(in crate::conformance) fn linked(&self, wallet: Address) -> Vec<AccountId> {
        let mut linked = Vec::new();
        for used in self.used.iter().filter(|used| used.links && used.payment.payer == wallet) {
            let id = self.id(used.owner);
            if self.owners[used.owner].is_live() && !linked.contains(&id) {
                linked.push(id);
            }
        }
        linked
    }
}
