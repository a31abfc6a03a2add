//! Quotes and claims in the model.

use std::collections::BTreeSet;

use metering_core::clock::Timestamp;
use metering_core::payments::{NonceHash, Payment, PaymentTarget, PaymentUse, Quote, QuoteState};
use metering_core::store::{Claim, Claimed, Created, KeyDelivery, QuoteOpened};

use super::recorded::{Claimer, OpenedQuote, Used};
use super::{InUse, Model};

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

impl OpenedQuote {
    /// When payments stop being honoured, in milliseconds.
    fn grace_ends(&self) -> i64 {
        self.quote.expires_at.unix_millis() + 7 * DAY
    }

    fn waits_for(&self, payment: &Payment) -> bool {
        let Quote { payer, target, amount, created_at, .. } = &self.quote;
        let mined = payment.mined_at.unix_millis();
        self.claimer.is_none()
            && (payment.tx.chain_id, payment.token, payment.recipient)
                == (target.chain_id, target.token, target.recipient)
            && (payment.payer, payment.amount) == (*payer, *amount)
            && (created_at.unix_millis() - 2 * MINUTE..=self.grace_ends()).contains(&mined)
    }

    fn occupies_amount_of(&self, new: &Quote) -> bool {
        let Quote { payer, target, amount, .. } = &self.quote;
        let same_payment = (*payer, *target, *amount) == (new.payer, new.target, new.amount);
        same_payment && new.created_at.unix_millis() <= self.grace_ends() + 2 * MINUTE
    }
}

impl Model {
    fn state_of(&self, opened: &OpenedQuote) -> QuoteState {
        let Some(claimer) = &opened.claimer else { return QuoteState::Open };
        let (account, tx) = (self.id(claimer.owner), claimer.tx);
        // As long as the placeholder is the current key, no key has been given out.
        if claimer.placeholder == Some(self.owners[claimer.owner].key()) {
            QuoteState::Paid { account, tx }
        } else {
            QuoteState::Claimed { account, tx }
        }
    }

    pub(crate) fn quote(&self, nonce: &NonceHash) -> Option<Quote> {
        let opened = self.quotes.iter().find(|opened| opened.quote.nonce == *nonce)?;
        Some(Quote { state: self.state_of(opened), ..opened.quote.clone() })
    }

    /// All open quotes that a payment matches.
    pub(crate) fn quotes_paid_by(&self, payment: &Payment) -> Vec<Quote> {
        let waiting = self.quotes.iter().filter(|opened| opened.waits_for(payment));
        waiting.map(|opened| opened.quote.clone()).collect()
    }

    pub(crate) fn quoted_targets(&self, chain_id: u64) -> Vec<PaymentTarget> {
        let quoted = self.quotes.iter().map(|opened| opened.quote.target);
        let targets: BTreeSet<_> = quoted.filter(|target| target.chain_id == chain_id).collect();
        targets.into_iter().collect()
    }

    pub(crate) fn open_quote(&mut self, new: &Quote) -> Result<QuoteOpened, InUse> {
        if self.quote(&new.nonce).is_some() {
            return Err(InUse);
        }
        if self.has_email(new.email.as_ref()) {
            return Ok(QuoteOpened::EmailTaken);
        }
        if self.payer(new.payer).is_some() {
            return Ok(QuoteOpened::PayerTaken);
        }
        if self.quotes.iter().any(|opened| opened.occupies_amount_of(new)) {
            return Ok(QuoteOpened::AmountTaken);
        }
        self.quotes.push(OpenedQuote { quote: new.clone(), claimer: None });
        Ok(QuoteOpened::Opened)
    }

    pub(crate) fn claim(&mut self, claim: &Claim) -> Result<Claimed, InUse> {
        let Some(number) = self.quotes.iter().position(|opened| opened.quote.nonce == claim.nonce) else {
            return Ok(Claimed::NoSuchQuote);
        };
        let opened = &self.quotes[number];
        let Some(claimer) = &opened.claimer else { return self.sell(number, claim) };
        let awaits_key = matches!(self.state_of(opened), QuoteState::Paid { .. });
        if !awaits_key || claim.delivery == KeyDelivery::Later || claimer.tx != claim.payment.tx {
            return Ok(Claimed::AlreadyClaimed);
        }
        let given = self.replace_key(claimer.owner, claim.account.key, claim.now)?;
        Ok(given.map_or(Claimed::AlreadyClaimed, Claimed::Account))
    }

    /// Creates the account of an open quote.
    fn sell(&mut self, number: usize, claim: &Claim) -> Result<Claimed, InUse> {
        if self.is_used(claim.payment.tx) {
            return Ok(Claimed::TxUsed);
        }
        let mut new = claim.account.clone();
        if self.has_email(new.email.as_ref()) {
            new.email = None;
        }
        let account = match self.create(&new)? {
            Created::Account(account) => account,
            Created::PayerTaken => return Ok(Claimed::PayerTaken),
            Created::OutOfRange => return Ok(Claimed::OutOfRange),
            Created::EmailTaken => panic!("an account without an email cannot have a taken one"),
        };
        let owner = self.owners.len() - 1;
        let placeholder = (claim.delivery == KeyDelivery::Later).then_some(new.key);
        self.quotes[number].claimer = Some(Claimer { owner, tx: claim.payment.tx, placeholder });
        let paid = new.entries.into_iter().find_map(|entry| entry.payment);
        self.used.push(Used {
            payment: claim.payment.clone(),
            owner,
            used_as: PaymentUse::PaySignup,
            plan_id: paid.and_then(|paid| paid.plan_id),
            sold: claim.sold.clone(),
            value: claim.value.clone(),
            at: claim.now,
            steps: Vec::new(),
            links: false,
        });
        Ok(Claimed::Account(account))
    }

    /// Deletes unpaid quotes a day after their grace period and claimed ones after ninety days, and returns how many. A
    /// quote whose key has not been given out is kept.
    pub(super) fn forget_quotes(&mut self, now: Timestamp) -> usize {
        let (before, mut kept) = (self.quotes.len(), Vec::new());
        for opened in std::mem::take(&mut self.quotes) {
            let days = if opened.claimer.is_none() { 1 } else { 90 };
            let is_over = opened.grace_ends() + days * DAY <= now.unix_millis();
            if !is_over || matches!(self.state_of(&opened), QuoteState::Paid { .. }) {
                kept.push(opened);
            }
        }
        self.quotes = kept;
        before - self.quotes.len()
    }
}
