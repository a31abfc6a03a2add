//! Implements the payment part of the storage contract. Each method goes to the writer or to a reader.

use async_trait::async_trait;
use metering_core::access::KeyHash;
use metering_core::chains::{Address, TxRef};
use metering_core::payments::{
    ArrivalLocation, Challenge, NonceHash, Payment, PaymentRecord, PaymentTarget, Plan, PlanKey, Quote,
    RecipientRecord, Registration, UnreadableArrival,
};
use metering_core::store::{
    Claim, Claimed, Cursor, Page, PaymentCredit, PaymentCredited, PaymentSettled, QuoteOpened, SettlementChange,
};
use metering_core::{Account, AccountId, PaymentStore, Timestamp};

use crate::access::{accounts, challenges, wallets};
use crate::error::Result;
use crate::payments::{claims, plans, quotes, recipients, records, scan_marks, settlements, unreadable};
use crate::store::SqliteStore;

#[async_trait]
impl PaymentStore for SqliteStore {
    async fn plans(&self) -> Result<Vec<Plan>> {
        self.read(|snapshot| plans::list(snapshot)).await
    }

    async fn put_plans(&self, plans: Vec<Plan>) -> Result<()> {
        self.writer.write(move |connection| plans::put(connection, &plans)).await
    }

    async fn remove_plan(&self, key: &PlanKey) -> Result<bool> {
        let key = key.clone();
        self.writer.write(move |connection| plans::remove(connection, &key)).await
    }

    async fn set_plan_active(&self, key: &PlanKey, active: bool) -> Result<bool> {
        let key = key.clone();
        self.writer.write(move |connection| plans::set_active(connection, &key, active)).await
    }

    async fn open_quote(&self, quote: Quote) -> Result<QuoteOpened> {
        self.writer.write(move |connection| quotes::open(connection, quote)).await
    }

    async fn quote(&self, nonce: &NonceHash) -> Result<Option<Quote>> {
        let nonce = *nonce;
        self.read(move |connection| quotes::by_nonce(connection, &nonce)).await
    }

    async fn quote_paid_by(&self, payment: &Payment) -> Result<Option<Quote>> {
        let payment = payment.clone();
        self.read(move |connection| quotes::paid_by(connection, &payment)).await
    }

    async fn top_up_quotes(&self, account: &AccountId) -> Result<Vec<Quote>> {
        let account = account.clone();
        self.read(move |connection| quotes::top_ups(connection, &account)).await
    }

    async fn quoted_targets(&self, chain_id: u64) -> Result<Vec<PaymentTarget>> {
        self.read(move |connection| quotes::targets(connection, chain_id)).await
    }

    async fn claim_quote(&self, claim: Claim) -> Result<Claimed> {
        self.writer.write(move |connection| claims::claim(connection, claim)).await
    }

    async fn credit_payment(&self, credit: PaymentCredit) -> Result<PaymentCredited> {
        self.writer.write(move |connection| records::credit(connection, credit)).await
    }

    async fn payment(&self, tx: &TxRef) -> Result<Option<PaymentRecord>> {
        let tx = *tx;
        self.read(move |connection| records::by_tx(connection, &tx)).await
    }

    async fn payments(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<PaymentRecord>> {
        let after = after.cloned();
        self.read(move |connection| records::list(connection, after.as_ref(), limit)).await
    }

    async fn unsettled_payments(
        &self,
        chain_id: u64,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<PaymentRecord>> {
        let after = after.cloned();
        self.read(move |connection| settlements::unsettled(connection, chain_id, after.as_ref(), limit)).await
    }

    async fn settle_payment(&self, change: SettlementChange) -> Result<PaymentSettled> {
        self.writer.write(move |connection| settlements::settle(connection, &change)).await
    }

    async fn account_by_payer(&self, payer: &Address) -> Result<Option<Account>> {
        let payer = *payer;
        self.read(move |connection| accounts::by_payer(connection, &payer)).await
    }

    async fn linked_accounts(&self, wallet: &Address) -> Result<Vec<AccountId>> {
        let wallet = *wallet;
        self.read(move |connection| wallets::accounts_of(connection, &wallet)).await
    }

    async fn open_challenge(&self, challenge: Challenge) -> Result<()> {
        self.writer.write(move |connection| challenges::open(connection, challenge)).await
    }

    async fn challenge(&self, nonce: &str) -> Result<Option<Challenge>> {
        let nonce = nonce.to_owned();
        self.read(move |connection| challenges::by_nonce(connection, &nonce)).await
    }

    async fn fail_challenge(&self, nonce: &str) -> Result<()> {
        let nonce = nonce.to_owned();
        self.writer.write(move |connection| challenges::fail(connection, &nonce)).await
    }

    async fn rotate_key(&self, nonce: &str, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
        let nonce = nonce.to_owned();
        self.writer.write(move |connection| challenges::rotate_key(connection, &nonce, key, now)).await
    }

    async fn scan_mark(&self, chain_id: u64) -> Result<Option<u64>> {
        self.read(move |connection| scan_marks::of_chain(connection, chain_id)).await
    }

    async fn set_scan_mark(&self, chain_id: u64, block: u64) -> Result<()> {
        self.writer.write(move |connection| scan_marks::advance(connection, chain_id, block)).await
    }

    async fn register_recipients(&self, configured: Vec<(u64, Address)>, now: Timestamp) -> Result<Vec<Registration>> {
        self.writer.write(move |connection| recipients::register(connection, &configured, now)).await
    }

    async fn recipients(&self) -> Result<Vec<RecipientRecord>> {
        self.read(|snapshot| recipients::list(snapshot)).await
    }

    async fn put_unreadable(&self, arrival: UnreadableArrival) -> Result<()> {
        self.writer.write(move |connection| unreadable::put(connection, &arrival)).await
    }

    async fn unreadable(&self, chain_id: u64, from_block: u64, limit: u32) -> Result<Vec<UnreadableArrival>> {
        self.read(move |connection| unreadable::of_chain(connection, chain_id, from_block, limit)).await
    }

    async fn unreadable_due(&self, chain_id: u64, now: Timestamp, limit: u32) -> Result<Vec<UnreadableArrival>> {
        self.read(move |connection| unreadable::due(connection, chain_id, now, limit)).await
    }

    async fn forget_unreadable(&self, location: &ArrivalLocation) -> Result<()> {
        let location = *location;
        self.writer.write(move |connection| unreadable::forget(connection, &location)).await
    }
}
