use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;

use crate::account::{Account, AccountId, Email};
use crate::address::Address;
use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::payment::{
    ArrivalLocation, Payment, PaymentRecord, PaymentSettlement, PaymentTarget, PaymentUse, UnreadableArrival,
};
use crate::plan::{Plan, PlanKey};
use crate::quote::{NonceHash, Quote, QuoteState};
use crate::recipient::{RecipientRecord, Registration, register_recipients};
use crate::recovery::Challenge;
use crate::store::{
    Claim, Claimed, Created, Cursor, KeyDelivery, NewAccount, Page, PaymentCredit, PaymentCredited, PaymentSettled,
    PaymentStore, Posted, QuoteOpened, QuotePrecedence, SettlementChange, StoreError,
};
use crate::transaction::TxRef;
use crate::transfer::SourceId;

use super::MemoryStore;
use super::state::State;

/// Memory stores are never copied or moved, so they can share one id.
const STORE: SourceId = SourceId::from_bytes([0; 16]);

/// The payment state of a store.
#[derive(Debug, Default)]
pub(super) struct PaymentState {
    quotes: BTreeMap<NonceHash, Quote>,
    /// In the order written.
    pub(super) payments: Vec<PaymentRecord>,
    /// The index of each used transaction's record.
    pub(super) used: HashMap<TxRef, usize>,
    /// In the order of linking.
    links: Vec<(Address, AccountId)>,
    challenges: BTreeMap<String, Challenge>,
    scan_marks: BTreeMap<u64, u64>,
    recipients: BTreeMap<(u64, Address), RecipientRecord>,
    unreadable: BTreeMap<ArrivalLocation, UnreadableArrival>,
}

impl PaymentState {
    fn record_of(&self, tx: &TxRef) -> Option<&PaymentRecord> {
        self.used.get(tx).map(|index| &self.payments[*index])
    }

    fn write_record(&mut self, record: PaymentRecord) {
        self.used.insert(record.payment.tx, self.payments.len());
        self.payments.push(record);
    }

    fn quote_paid_by(&self, payment: &Payment) -> Option<&Quote> {
        self.quotes.values().find(|quote| quote.state == QuoteState::Open && quote.is_paid_by(payment))
    }

    fn amount_is_taken(&self, new: &Quote) -> bool {
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

impl State {
    fn active(&self, is_it: impl Fn(&Account) -> bool) -> Option<&Account> {
        let mut accounts = self.accounts.iter().map(|record| &record.account);
        accounts.find(|account| account.revoked_at.is_none() && is_it(account))
    }

    pub(super) fn email_is_taken(&self, new: &NewAccount) -> bool {
        new.email.as_ref().is_some_and(|email| self.email_of_account(email))
    }

    pub(super) fn email_of_account(&self, email: &Email) -> bool {
        self.active(|account| account.email.as_ref() == Some(email)).is_some()
    }

    pub(super) fn account_of_payer(&self, payer: &Address) -> Option<&Account> {
        self.active(|account| account.payer.is_some_and(|known| known.address == *payer))
    }

    fn open_quote(&mut self, quote: Quote) -> Result<QuoteOpened, StoreError> {
        if quote.state != QuoteState::Open || self.payments.quotes.contains_key(&quote.nonce) {
            return Err(StoreError::Corrupt("a new quote is not open, or its nonce is in use".to_owned()));
        }
        if quote.email.as_ref().is_some_and(|email| self.email_of_account(email)) {
            return Ok(QuoteOpened::EmailTaken);
        }
        if self.account_of_payer(&quote.payer).is_some() {
            return Ok(QuoteOpened::PayerTaken);
        }
        if self.payments.amount_is_taken(&quote) {
            return Ok(QuoteOpened::AmountTaken);
        }
        self.payments.quotes.insert(quote.nonce, quote);
        Ok(QuoteOpened::Opened)
    }

    fn claim_quote(&mut self, claim: Claim) -> Result<Claimed, StoreError> {
        let Some(quote) = self.payments.quotes.get(&claim.nonce) else {
            return Ok(Claimed::NoSuchQuote);
        };
        match &quote.state {
            QuoteState::Open => self.claim_open_quote(claim),
            QuoteState::Paid { account, tx } if claim.delivery == KeyDelivery::Now && *tx == claim.payment.tx => {
                let account = account.clone();
                let given = self.replace_key(&account, claim.account.key)?;
                Ok(given.map_or(Claimed::AlreadyClaimed, Claimed::Account))
            }
            QuoteState::Paid { .. } | QuoteState::Claimed { .. } => Ok(Claimed::AlreadyClaimed),
        }
    }

    fn claim_open_quote(&mut self, claim: Claim) -> Result<Claimed, StoreError> {
        let Claim { nonce, payment, mut account, delivery, now } = claim;
        if self.payments.record_of(&payment.tx).is_some() {
            return Ok(Claimed::TxUsed);
        }
        if self.email_is_taken(&account) {
            account.email = None;
        }
        let plan_id = account.entries.iter().find_map(|entry| entry.payment.clone()).and_then(|paid| paid.plan_id);
        let made = match self.create_account(account)? {
            Created::Account(account) => account,
            Created::PayerTaken => return Ok(Claimed::PayerTaken),
            Created::OutOfRange => return Ok(Claimed::OutOfRange),
            Created::EmailTaken => return Err(StoreError::Corrupt("an account without email has a taken one".into())),
        };
        let (account, tx) = (made.id.clone(), payment.tx);
        if let Some(quote) = self.payments.quotes.get_mut(&nonce) {
            quote.state = match delivery {
                KeyDelivery::Now => QuoteState::Claimed { account: account.clone(), tx },
                KeyDelivery::Later => QuoteState::Paid { account: account.clone(), tx },
            };
        }
        let (used_as, settlement) = (PaymentUse::PaySignup, PaymentSettlement::of_new(&payment));
        self.payments.write_record(PaymentRecord { payment, account, used_as, plan_id, recorded_at: now, settlement });
        Ok(Claimed::Account(made))
    }

    fn credit_payment(&mut self, credit: PaymentCredit) -> PaymentCredited {
        let PaymentCredit { account, payment, used_as, entry, link_payer, quotes, now } = credit;
        let Some(known) = self.record(&account).filter(|record| record.account.revoked_at.is_none()) else {
            return PaymentCredited::NoSuchAccount;
        };
        if let Some(record) = self.payments.record_of(&payment.tx) {
            return if record.account == account && record.used_as != PaymentUse::PaySignup {
                PaymentCredited::Repeated(known.account.clone(), Box::new(record.clone()))
            } else {
                PaymentCredited::TxUsed
            };
        }
        if quotes == QuotePrecedence::Quote && self.payments.quote_paid_by(&payment).is_some() {
            return PaymentCredited::BelongsToQuote;
        }
        let plan_id = entry.payment.clone().and_then(|paid| paid.plan_id);
        let after = match self.post_entry(&account, entry, now) {
            Posted::Account(after) => after,
            Posted::NoSuchAccount => return PaymentCredited::NoSuchAccount,
            Posted::OutOfRange => return PaymentCredited::OutOfRange,
        };
        let link = (payment.payer, account.clone());
        if link_payer && !self.payments.links.contains(&link) {
            self.payments.links.push(link);
        }
        let settlement = PaymentSettlement::of_new(&payment);
        self.payments.write_record(PaymentRecord { payment, account, used_as, plan_id, recorded_at: now, settlement });
        PaymentCredited::Account(after)
    }

    fn linked_accounts(&self, wallet: &Address) -> Vec<AccountId> {
        let live = |id: &AccountId| self.record(id).is_some_and(|record| record.account.revoked_at.is_none());
        let linked = self.payments.links.iter().filter(|(linked, id)| linked == wallet && live(id));
        linked.map(|(_, id)| id.clone()).collect()
    }

    fn open_challenge(&mut self, challenge: Challenge) -> Result<(), StoreError> {
        if self.payments.challenges.contains_key(&challenge.nonce) {
            return Err(StoreError::Corrupt("a new challenge's nonce is in use".to_owned()));
        }
        self.payments.challenges.insert(challenge.nonce.clone(), challenge);
        Ok(())
    }

    fn fail_challenge(&mut self, nonce: &str) {
        let Some(challenge) = self.payments.challenges.get_mut(nonce) else { return };
        challenge.failures += 1;
        if challenge.failures >= Challenge::MAX_FAILURES {
            self.payments.challenges.remove(nonce);
        }
    }

    fn rotate_key(&mut self, nonce: &str, key: KeyHash, now: Timestamp) -> Result<Option<Account>, StoreError> {
        let Some(challenge) = self.payments.challenges.get(nonce).filter(|challenge| now <= challenge.expires_at)
        else {
            return Ok(None);
        };
        let (id, address) = (challenge.account.clone(), challenge.address);
        let is_payer = |account: &Account| account.payer.is_some_and(|payer| payer.address == address);
        if !self.record(&id).is_some_and(|record| is_payer(&record.account)) {
            return Ok(None);
        }
        let rotated = self.replace_key(&id, key)?;
        if rotated.is_some() {
            self.payments.challenges.remove(nonce);
        }
        Ok(rotated)
    }
}

#[async_trait]
impl PaymentStore for MemoryStore {
    async fn plans(&self) -> Result<Vec<Plan>, StoreError> {
        let mut plans: Vec<Plan> = self.state()?.plans.values().cloned().collect();
        plans.sort_by(|a, b| (a.sort_order, a.chain_id, &a.id).cmp(&(b.sort_order, b.chain_id, &b.id)));
        Ok(plans)
    }

    async fn put_plans(&self, plans: Vec<Plan>) -> Result<(), StoreError> {
        self.state()?.plans.extend(plans.into_iter().map(|plan| (plan.key(), plan)));
        Ok(())
    }

    async fn remove_plan(&self, key: &PlanKey) -> Result<bool, StoreError> {
        Ok(self.state()?.plans.remove(key).is_some())
    }

    async fn set_plan_active(&self, key: &PlanKey, active: bool) -> Result<bool, StoreError> {
        let mut state = self.state()?;
        let plan = state.plans.get_mut(key);
        Ok(plan.map(|plan| plan.active = active).is_some())
    }

    async fn open_quote(&self, quote: Quote) -> Result<QuoteOpened, StoreError> {
        self.state()?.open_quote(quote)
    }

    async fn quote(&self, nonce: &NonceHash) -> Result<Option<Quote>, StoreError> {
        Ok(self.state()?.payments.quotes.get(nonce).cloned())
    }

    async fn quote_paid_by(&self, payment: &Payment) -> Result<Option<Quote>, StoreError> {
        Ok(self.state()?.payments.quote_paid_by(payment).cloned())
    }

    async fn quoted_targets(&self, chain_id: u64) -> Result<Vec<PaymentTarget>, StoreError> {
        let state = self.state()?;
        let quoted = state.payments.quotes.values().map(|quote| quote.target);
        let targets: BTreeSet<_> = quoted.filter(|target| target.chain_id == chain_id).collect();
        Ok(targets.into_iter().collect())
    }

    async fn claim_quote(&self, claim: Claim) -> Result<Claimed, StoreError> {
        self.state()?.claim_quote(claim)
    }

    async fn credit_payment(&self, credit: PaymentCredit) -> Result<PaymentCredited, StoreError> {
        Ok(self.state()?.credit_payment(credit))
    }

    async fn payment(&self, tx: &TxRef) -> Result<Option<PaymentRecord>, StoreError> {
        Ok(self.state()?.payments.record_of(tx).cloned())
    }

    async fn payments(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<PaymentRecord>, StoreError> {
        self.state()?.payments_page(after, limit)
    }

    async fn unsettled_payments(
        &self,
        chain_id: u64,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<PaymentRecord>, StoreError> {
        self.state()?.unsettled_page(chain_id, after, limit)
    }

    async fn settle_payment(&self, change: SettlementChange) -> Result<PaymentSettled, StoreError> {
        self.state()?.settle_payment(&change)
    }

    async fn account_by_payer(&self, payer: &Address) -> Result<Option<Account>, StoreError> {
        Ok(self.state()?.account_of_payer(payer).cloned())
    }

    async fn linked_accounts(&self, wallet: &Address) -> Result<Vec<AccountId>, StoreError> {
        Ok(self.state()?.linked_accounts(wallet))
    }

    async fn open_challenge(&self, challenge: Challenge) -> Result<(), StoreError> {
        self.state()?.open_challenge(challenge)
    }

    async fn challenge(&self, nonce: &str) -> Result<Option<Challenge>, StoreError> {
        Ok(self.state()?.payments.challenges.get(nonce).cloned())
    }

    async fn fail_challenge(&self, nonce: &str) -> Result<(), StoreError> {
        self.state()?.fail_challenge(nonce);
        Ok(())
    }

    async fn rotate_key(&self, nonce: &str, key: KeyHash, now: Timestamp) -> Result<Option<Account>, StoreError> {
        self.state()?.rotate_key(nonce, key, now)
    }

    async fn scan_mark(&self, chain_id: u64) -> Result<Option<u64>, StoreError> {
        Ok(self.state()?.payments.scan_marks.get(&chain_id).copied())
    }

    async fn set_scan_mark(&self, chain_id: u64, block: u64) -> Result<(), StoreError> {
        let mut state = self.state()?;
        let mark = state.payments.scan_marks.entry(chain_id).or_insert(block);
        *mark = block.max(*mark);
        Ok(())
    }

    async fn register_recipients(
        &self,
        configured: Vec<(u64, Address)>,
        now: Timestamp,
    ) -> Result<Vec<Registration>, StoreError> {
        let mut state = self.state()?;
        let recipients = &mut state.payments.recipients;
        let known: Vec<RecipientRecord> = recipients.values().copied().collect();
        let changes = register_recipients(&known, &configured, STORE, now);
        recipients.extend(changes.written.iter().map(|record| ((record.chain_id, record.recipient), *record)));
        recipients.retain(|(chain_id, recipient), _| {
            *recipient != RecipientRecord::ANY || !changes.used_up.contains(chain_id)
        });
        Ok(changes.registrations)
    }

    async fn recipients(&self) -> Result<Vec<RecipientRecord>, StoreError> {
        Ok(self.state()?.payments.recipients.values().copied().collect())
    }

    async fn put_unreadable(&self, arrival: UnreadableArrival) -> Result<(), StoreError> {
        self.state()?.payments.unreadable.insert(arrival.location, arrival);
        Ok(())
    }

    async fn unreadable(
        &self,
        chain_id: u64,
        from_block: u64,
        limit: u32,
    ) -> Result<Vec<UnreadableArrival>, StoreError> {
        let state = self.state()?;
        let first = ArrivalLocation { chain_id, block_number: from_block, hash: None };
        let all = state.payments.unreadable.range(first..).map(|(_, arrival)| arrival);
        let of_chain = all.take_while(|arrival| arrival.location.chain_id == chain_id);
        Ok(of_chain.take(usize::try_from(limit).unwrap_or(usize::MAX)).cloned().collect())
    }

    async fn unreadable_due(
        &self,
        chain_id: u64,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<UnreadableArrival>, StoreError> {
        let state = self.state()?;
        let due = |arrival: &&UnreadableArrival| {
            arrival.location.chain_id == chain_id && arrival.next_attempt_at.is_some_and(|at| at <= now)
        };
        let mut due: Vec<_> = state.payments.unreadable.values().filter(due).cloned().collect();
        due.sort_by_key(|arrival| (arrival.next_attempt_at, arrival.location));
        due.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(due)
    }

    async fn forget_unreadable(&self, location: &ArrivalLocation) -> Result<(), StoreError> {
        self.state()?.payments.unreadable.remove(location);
        Ok(())
    }
}
