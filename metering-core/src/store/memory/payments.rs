use std::collections::BTreeSet;

use async_trait::async_trait;

use crate::access::account::{Account, AccountId};
use crate::access::key::KeyHash;
use crate::chains::address::Address;
use crate::chains::transaction::TxRef;
use crate::clock::Timestamp;
use crate::decision::{self, ClaimChanges, ClaimStep, CreditChanges, CreditFacts, Decided, QuoteFacts};
use crate::payments::payment::{ArrivalLocation, Payment, PaymentRecord, PaymentTarget, UnreadableArrival};
use crate::payments::plan::{Plan, PlanKey};
use crate::payments::quote::{NonceHash, Quote};
use crate::payments::recipient::{RecipientRecord, Registration, register_recipients};
use crate::payments::recovery::Challenge;
use crate::store::{
    Claim, Claimed, Cursor, Page, PaymentCredit, PaymentCredited, PaymentSettled, PaymentStore, QuoteOpened,
    SettlementChange, StoreError,
};
use crate::transfer::SourceId;

use super::MemoryStore;
use super::state::State;

/// Memory stores are never copied or moved, so they can share one id.
const STORE: SourceId = SourceId::from_bytes([0; 16]);

impl State {
    fn open_quote(&mut self, quote: Quote) -> Result<QuoteOpened, StoreError> {
        let facts = QuoteFacts {
            nonce_in_use: self.payments.quotes.contains_key(&quote.nonce),
            owner: self.owner_facts(quote.email.as_ref(), Some(&quote.payer)),
            amount_taken: self.payments.amount_is_taken(&quote),
            unpaid_top_ups: self.payments.quotes.values().filter(|old| old.counts_against(&quote)).count(),
        };
        Ok(match decision::open_quote(quote, facts)? {
            Decided::Accepted(quote) => {
                self.payments.quotes.insert(quote.nonce, quote);
                QuoteOpened::Opened
            }
            Decided::Refused(refusal) => refusal,
        })
    }

    fn claim_quote(&mut self, claim: Claim) -> Result<Claimed, StoreError> {
        let decided = match decision::claim_step(&claim, self.payments.quotes.get(&claim.nonce)) {
            ClaimStep::Refused(refusal) => return Ok(refusal),
            ClaimStep::CreateAccount => return self.claim_open(claim),
            ClaimStep::ReplaceKey(account) => {
                decision::claim_paid(&claim, self.key_facts(&account, &claim.account.key))?
            }
        };
        Ok(match decided {
            Decided::Accepted(changes) => Claimed::Account(self.write_keys(changes)),
            Decided::Refused(refusal) => refusal,
        })
    }

    fn claim_open(&mut self, claim: Claim) -> Result<Claimed, StoreError> {
        let tx_used = self.payments.record_of(&claim.payment.tx).is_some();
        let facts = self.create_facts(&claim.account);
        let ClaimChanges { account, record, nonce, quote: state } = match decision::claim_open(claim, tx_used, facts)? {
            Decided::Accepted(changes) => changes,
            Decided::Refused(refusal) => return Ok(refusal),
        };
        if let Some(quote) = self.payments.quotes.get_mut(&nonce) {
            quote.state = state;
        }
        self.payments.write_record(record);
        Ok(Claimed::Account(self.insert_account(account)))
    }

    fn credit_payment(&mut self, credit: PaymentCredit) -> PaymentCredited {
        let facts = self.credit_facts(&credit);
        match decision::credit_payment(credit, facts) {
            Decided::Accepted(changes) => PaymentCredited::Account(self.write_credit(changes)),
            Decided::Refused(refusal) => refusal,
        }
    }

    pub(super) fn credit_facts(&self, credit: &PaymentCredit) -> CreditFacts<usize> {
        CreditFacts {
            account: self.found(&credit.account),
            record: self.payments.record_of(&credit.payment.tx).cloned(),
            quote: self.payments.quote_paid_by(&credit.payment).cloned(),
        }
    }

    pub(super) fn write_credit(&mut self, changes: CreditChanges<usize>) -> Account {
        let CreditChanges { posted, record, link, quote } = changes;
        if let Some(link) = link.map(|wallet| (wallet, posted.account.id.clone()))
            && !self.payments.links.contains(&link)
        {
            self.payments.links.push(link);
        }
        if let Some((nonce, state)) = quote
            && let Some(quote) = self.payments.quotes.get_mut(&nonce)
        {
            quote.state = state;
        }
        self.payments.write_record(record);
        self.write_entry(posted)
    }

    fn linked_accounts(&self, wallet: &Address) -> Vec<AccountId> {
        let live = |id: &AccountId| self.record(id).is_some_and(|record| record.account.revoked_at.is_none());
        let linked = self.payments.links.iter().filter(|(linked, id)| linked == wallet && live(id));
        linked.map(|(_, id)| id.clone()).collect()
    }

    fn open_challenge(&mut self, challenge: Challenge) -> Result<(), StoreError> {
        let nonce_in_use = self.payments.challenges.contains_key(&challenge.nonce);
        let challenge = decision::open_challenge(challenge, nonce_in_use)?;
        self.payments.challenges.insert(challenge.nonce.clone(), challenge);
        Ok(())
    }

    fn fail_challenge(&mut self, nonce: &str) {
        if let Some(failed) = self.payments.challenges.remove(nonce).and_then(decision::fail_challenge) {
            self.payments.challenges.insert(failed.nonce.clone(), failed);
        }
    }

    fn rotate_key(&mut self, nonce: &str, key: KeyHash, now: Timestamp) -> Result<Option<Account>, StoreError> {
        let Some(challenge) = self.payments.challenges.get(nonce) else { return Ok(None) };
        let facts = self.key_facts(&challenge.account, &key);
        let changes = decision::rotate_key(challenge, facts, key, now)?;
        Ok(changes.map(|changes| {
            self.payments.challenges.remove(nonce);
            self.write_keys(changes)
        }))
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

    async fn top_up_quotes(&self, account: &AccountId) -> Result<Vec<Quote>, StoreError> {
        let state = self.state()?;
        let own = state.payments.quotes.values().filter(|quote| quote.top_up.as_ref() == Some(account));
        let mut own: Vec<Quote> = own.cloned().collect();
        own.sort_by_key(|quote| (quote.created_at, quote.nonce));
        Ok(own)
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
