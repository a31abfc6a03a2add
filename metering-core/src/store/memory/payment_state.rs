//! The payments, quotes and recipients of a memory store.

use std::collections::{BTreeMap, HashMap};

use crate::access::account::AccountId;
use crate::chains::address::Address;
use crate::chains::transaction::TxRef;
use crate::clock::Timestamp;
use crate::payments::payment::{ArrivalLocation, Payment, PaymentRecord, UnreadableArrival};
use crate::payments::quote::{NonceHash, Quote, QuoteState};
use crate::payments::recipient::RecipientRecord;
use crate::payments::recovery::Challenge;

/// The payment state of a store.
#[derive(Debug, Default)]
pub(super) struct PaymentState {
    pub(super) quotes: BTreeMap<NonceHash, Quote>,
    /// In the order written.
    pub(super) payments: Vec<PaymentRecord>,
    /// The index of each used transaction's record.
    pub(super) used: HashMap<TxRef, usize>,
    /// In the order of linking.
    pub(super) links: Vec<(Address, AccountId)>,
    pub(super) challenges: BTreeMap<String, Challenge>,
    pub(super) scan_marks: BTreeMap<u64, u64>,
    pub(super) recipients: BTreeMap<(u64, Address), RecipientRecord>,
    pub(super) unreadable: BTreeMap<ArrivalLocation, UnreadableArrival>,
}

impl PaymentState {
    pub(super) fn record_of(&self, tx: &TxRef) -> Option<&PaymentRecord> {
        self.used.get(tx).map(|index| &self.payments[*index])
    }

    pub(super) fn write_record(&mut self, record: PaymentRecord) {
        self.used.insert(record.payment.tx, self.payments.len());
        self.payments.push(record);
    }

    /// Replaces the record of a transaction.
    pub(super) fn update_record(&mut self, record: PaymentRecord) {
        let index = self.used[&record.payment.tx];
        self.payments[index] = record;
    }

    pub(super) fn quote_paid_by(&self, payment: &Payment) -> Option<&Quote> {
        let settlement = |quote: &Quote| Some(self.record_of(&quote.state.tx()?)?.settlement);
        self.quotes.values().find(|quote| quote.is_paid_by(payment) && quote.waits(settlement(quote)))
    }

    pub(super) fn amount_is_taken(&self, new: &Quote) -> bool {
        self.quotes.values().any(|quote| quote.reserves_amount_of(new))
    }

    /// Marks an account's paid quotes as claimed, because its key was delivered or replaced.
    pub(super) fn key_given_out(&mut self, id: &AccountId) {
        for quote in self.quotes.values_mut() {
            if let QuoteState::Paid { account, tx } = &quote.state
                && account == id
            {
                quote.state = QuoteState::Claimed { account: account.clone(), tx: *tx };
            }
        }
    }

    pub(super) fn forget_expired(&mut self, now: Timestamp) -> u64 {
        let before = self.quotes.len() + self.challenges.len();
        self.quotes.retain(|_, quote| quote.forgotten_from().is_none_or(|from| now < from));
        self.challenges.retain(|_, challenge| now < challenge.expires_at.saturating_add(Challenge::RETENTION));
        u64::try_from(before - self.quotes.len() - self.challenges.len()).unwrap_or(u64::MAX)
    }
}
