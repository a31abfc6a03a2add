//! The gated store's quotes, payments and challenges, passed on to the memory store behind it.

use async_trait::async_trait;
use metering_core::{
    Account, AccountId, Address, ArrivalLocation, Challenge, Claim, Claimed, Cursor, KeyHash, NonceHash, Page, Payment,
    PaymentCredit, PaymentCredited, PaymentRecord, PaymentSettled, PaymentStore, PaymentTarget, Quote, QuoteOpened,
    RecipientRecord, Registration, SettlementChange, StoreError, Timestamp, TxRef, UnreadableArrival,
};

use super::gated::Gated;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl PaymentStore for Gated {
    async fn open_quote(&self, quote: Quote) -> Result<QuoteOpened> {
        self.store.open_quote(quote).await
    }
    async fn quote(&self, nonce: &NonceHash) -> Result<Option<Quote>> {
        self.store.quote(nonce).await
    }
    async fn quote_paid_by(&self, payment: &Payment) -> Result<Option<Quote>> {
        self.store.quote_paid_by(payment).await
    }
    async fn quoted_targets(&self, chain_id: u64) -> Result<Vec<PaymentTarget>> {
        self.store.quoted_targets(chain_id).await
    }
    async fn claim_quote(&self, claim: Claim) -> Result<Claimed> {
        self.store.claim_quote(claim).await
    }
    async fn credit_payment(&self, credit: PaymentCredit) -> Result<PaymentCredited> {
        self.store.credit_payment(credit).await
    }
    async fn payment(&self, tx: &TxRef) -> Result<Option<PaymentRecord>> {
        self.store.payment(tx).await
    }
    async fn payments(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<PaymentRecord>> {
        self.store.payments(after, limit).await
    }
    async fn unsettled_payments(
        &self,
        chain_id: u64,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<PaymentRecord>> {
        self.store.unsettled_payments(chain_id, after, limit).await
    }
    async fn settle_payment(&self, change: SettlementChange) -> Result<PaymentSettled> {
        self.store.settle_payment(change).await
    }
    async fn account_by_payer(&self, payer: &Address) -> Result<Option<Account>> {
        self.store.account_by_payer(payer).await
    }
    async fn linked_accounts(&self, wallet: &Address) -> Result<Vec<AccountId>> {
        self.store.linked_accounts(wallet).await
    }
    async fn open_challenge(&self, challenge: Challenge) -> Result<()> {
        self.store.open_challenge(challenge).await
    }
    async fn challenge(&self, nonce: &str) -> Result<Option<Challenge>> {
        self.store.challenge(nonce).await
    }
    async fn fail_challenge(&self, nonce: &str) -> Result<()> {
        self.store.fail_challenge(nonce).await
    }
    async fn rotate_key(&self, nonce: &str, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
        self.store.rotate_key(nonce, key, now).await
    }
    async fn scan_mark(&self, chain_id: u64) -> Result<Option<u64>> {
        self.store.scan_mark(chain_id).await
    }
    async fn set_scan_mark(&self, chain_id: u64, block: u64) -> Result<()> {
        self.store.set_scan_mark(chain_id, block).await
    }
    async fn register_recipients(&self, configured: Vec<(u64, Address)>, now: Timestamp) -> Result<Vec<Registration>> {
        self.store.register_recipients(configured, now).await
    }
    async fn recipients(&self) -> Result<Vec<RecipientRecord>> {
        self.store.recipients().await
    }
    async fn put_unreadable(&self, arrival: UnreadableArrival) -> Result<()> {
        self.store.put_unreadable(arrival).await
    }
    async fn unreadable(&self, chain_id: u64, from_block: u64, limit: u32) -> Result<Vec<UnreadableArrival>> {
        self.store.unreadable(chain_id, from_block, limit).await
    }
    async fn unreadable_due(&self, chain_id: u64, now: Timestamp, limit: u32) -> Result<Vec<UnreadableArrival>> {
        self.store.unreadable_due(chain_id, now, limit).await
    }
    async fn forget_unreadable(&self, location: &ArrivalLocation) -> Result<()> {
        self.store.forget_unreadable(location).await
    }
}
