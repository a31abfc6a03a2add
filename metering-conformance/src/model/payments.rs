//! Used payments and the wallets they linked, in the model.

use metering_core::access::AccountId;
use metering_core::chains::{Address, TxRef};
use metering_core::money::{Credits, LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::payments::{Payment, PaymentRecord, PaymentSettlement, PaymentUse, SettlementEntry, SettlementStep};
use metering_core::store::{PaymentCredit, PaymentCredited, PaymentSettled, Posted, QuotePrecedence, SettlementChange};

use super::Model;
use super::recorded::Used;

impl Used {
    fn settlement(&self) -> PaymentSettlement {
        match self.steps.last() {
            None if self.payment.block_hash.is_none() => PaymentSettlement::Final,
            None | Some((SettlementStep::Move(_) | SettlementStep::Restore(_), _)) => PaymentSettlement::Unsettled,
            Some((SettlementStep::Finalize, _)) => PaymentSettlement::Final,
            Some((SettlementStep::Reverse, at)) => PaymentSettlement::Reversed { at: *at },
        }
    }

    /// The payment, in the last block in which it was seen.
    fn moved_payment(&self) -> Payment {
        let mut payment = self.payment.clone();
        for (step, _) in &self.steps {
            if let SettlementStep::Move(block) | SettlementStep::Restore(block) = step {
                payment.block_number = block.number;
                payment.block_hash = Some(block.hash);
                payment.mined_at = block.time;
            }
        }
        payment
    }
}

impl Model {
    pub(crate) fn settle(&mut self, change: &SettlementChange) -> PaymentSettled {
        let SettlementChange { seen, step, now } = change;
        let Some(number) = self.records().iter().position(|record| record == seen) else {
            return PaymentSettled::Stale;
        };
        let (allowed, takes) = match (seen.settlement, step) {
            (PaymentSettlement::Unsettled, SettlementStep::Finalize | SettlementStep::Move(_)) => (true, None),
            (PaymentSettlement::Unsettled, SettlementStep::Reverse) => (true, Some((LedgerKind::PaymentReversed, -1))),
            (PaymentSettlement::Reversed { .. }, SettlementStep::Restore(_)) => {
                (true, Some((LedgerKind::PaymentRestored, 1)))
            }
            _ => (false, None),
        };
        if !allowed {
            return PaymentSettled::Stale;
        }
        let owner = self.used[number].owner;
        if let Some((kind, sign)) = takes {
            let bought = |entry: &&super::Entry| {
                let buys = matches!(entry.kind, LedgerKind::PurchasePaySignup | LedgerKind::PurchaseTopup);
                buys && entry.payment.as_ref().is_some_and(|paid| paid.tx == seen.payment.tx)
            };
            let atoms: i128 = self.owners[owner].entries.iter().filter(bought).map(|entry| entry.atoms).sum();
            let Ok(atoms) = i64::try_from(sign * atoms) else { return PaymentSettled::OutOfRange };
            // The description comes from the shared rule; the account and the amount are checked here.
            let SettlementEntry::Entry(NewLedgerEntry { description, .. }) = seen.entry_of(step, 0) else {
                panic!("a step that changes credits has an entry")
            };
            let payment = Some(PaymentRef { tx: seen.payment.tx, plan_id: seen.plan_id.clone() });
            let amount = Credits::from_atoms(atoms);
            let entry = NewLedgerEntry { kind, amount, description, payment };
            if !self.owners[owner].add(&[entry], *now) {
                return PaymentSettled::OutOfRange;
            }
            self.owners[owner].tell_entry(*now);
            self.ledger.extend(self.owners[owner].entries.last().map(|entry| (owner, entry.clone())));
        }
        self.used[number].steps.push((step.clone(), *now));
        if matches!(step, SettlementStep::Restore(_)) {
            self.forget_failure(seen.payment.tx);
        }
        PaymentSettled::Changed(self.owners[owner].account())
    }

    pub(super) fn is_used(&self, tx: TxRef) -> bool {
        self.used.iter().any(|used| used.payment.tx == tx)
    }

    /// The records of all payments, in the order they were written.
    pub(crate) fn records(&self) -> Vec<PaymentRecord> {
        let record = |used: &Used| PaymentRecord {
            settlement: used.settlement(),
            plan_id: used.plan_id.clone(),
            sold: used.sold.clone(),
            value: used.value.clone(),
            ..PaymentRecord::of(used.moved_payment(), self.id(used.owner), used.used_as, used.at)
        };
        self.used.iter().map(record).collect()
    }

    pub(crate) fn credit(&mut self, credit: &PaymentCredit) -> PaymentCredited {
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
                    sold: credit.sold.clone(),
                    value: credit.value.clone(),
                    at: credit.now,
                    steps: Vec::new(),
                    links: credit.link_payer,
                });
                PaymentCredited::Account(account)
            }
        }
    }

    /// The live accounts linked to a wallet, ordered by the first payment that linked each.
    pub(crate) fn linked(&self, wallet: Address) -> Vec<AccountId> {
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
