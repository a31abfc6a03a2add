//! Implements the payment part of the storage contract. Each method runs in a transaction.

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
use metering_core::{Account, AccountId, PaymentStore, StoreError, Timestamp};

use crate::access::{accounts, challenges, wallets};
use crate::payments::{claims, plans, quotes, recipients, records, scan_marks, settlements, unreadable};
use crate::store::PostgresStore;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl PaymentStore for PostgresStore {
    async fn plans(&self) -> Result<Vec<Plan>> {
        self.read(|client| Box::pin(plans::list(client))).await
    }

    async fn put_plans(&self, plans: Vec<Plan>) -> Result<()> {
        self.write(|write| {
            let plans = plans.clone();
            Box::pin(async move { plans::put(write, &plans).await })
        })
        .await
    }

    async fn remove_plan(&self, key: &PlanKey) -> Result<bool> {
        self.write(|write| {
            let key = key.clone();
            Box::pin(async move { plans::remove(write, &key).await })
        })
        .await
    }

    async fn set_plan_active(&self, key: &PlanKey, active: bool) -> Result<bool> {
        self.write(|write| {
            let key = key.clone();
            Box::pin(async move { plans::set_active(write, &key, active).await })
        })
        .await
    }

    async fn open_quote(&self, quote: Quote) -> Result<QuoteOpened> {
        self.write(|write| Box::pin(quotes::open(write, quote.clone()))).await
    }

    async fn quote(&self, nonce: &NonceHash) -> Result<Option<Quote>> {
        let nonce = *nonce;
        self.read(move |client| Box::pin(async move { quotes::by_nonce(client, &nonce).await })).await
    }

    async fn quote_paid_by(&self, payment: &Payment) -> Result<Option<Quote>> {
        self.read(|client| {
            let payment = payment.clone();
            Box::pin(async move { quotes::paid_by(client, &payment).await })
        })
        .await
    }

    async fn top_up_quotes(&self, account: &AccountId) -> Result<Vec<Quote>> {
        self.read(|client| {
            let account = account.clone();
            Box::pin(async move { quotes::top_ups(client, &account).await })
        })
        .await
    }

    async fn quoted_targets(&self, chain_id: u64) -> Result<Vec<PaymentTarget>> {
        self.read(move |client| Box::pin(quotes::targets(client, chain_id))).await
    }

    async fn claim_quote(&self, claim: Claim) -> Result<Claimed> {
        self.write(|write| Box::pin(claims::claim(write, claim.clone()))).await
    }

    async fn credit_payment(&self, credit: PaymentCredit) -> Result<PaymentCredited> {
        self.write(|write| Box::pin(records::credit(write, credit.clone()))).await
    }

    async fn payment(&self, tx: &TxRef) -> Result<Option<PaymentRecord>> {
        let tx = *tx;
        self.read(move |client| Box::pin(async move { records::by_tx(client, &tx).await })).await
    }

    async fn payments(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<PaymentRecord>> {
        self.read(|client| {
            let after = after.cloned();
            Box::pin(async move { records::list(client, after.as_ref(), limit).await })
        })
        .await
    }

    async fn unsettled_payments(
        &self,
        chain_id: u64,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<PaymentRecord>> {
        self.read(|client| {
            let after = after.cloned();
            Box::pin(async move { settlements::unsettled(client, chain_id, after.as_ref(), limit).await })
        })
        .await
    }

    async fn settle_payment(&self, change: SettlementChange) -> Result<PaymentSettled> {
        self.write(|write| Box::pin(settlements::settle(write, change.clone()))).await
    }

    async fn account_by_payer(&self, payer: &Address) -> Result<Option<Account>> {
        let payer = *payer;
        self.read(move |client| Box::pin(async move { accounts::by_payer(client, &payer).await })).await
    }

    async fn linked_accounts(&self, wallet: &Address) -> Result<Vec<AccountId>> {
        let wallet = *wallet;
        self.read(move |client| Box::pin(async move { wallets::accounts_of(client, &wallet).await })).await
    }

    async fn open_challenge(&self, challenge: Challenge) -> Result<()> {
        self.write(|write| Box::pin(challenges::open(write, challenge.clone()))).await
    }

    async fn challenge(&self, nonce: &str) -> Result<Option<Challenge>> {
        self.read(|client| {
            let nonce = nonce.to_owned();
            Box::pin(async move { challenges::by_nonce(client, &nonce).await })
        })
        .await
    }

    async fn fail_challenge(&self, nonce: &str) -> Result<()> {
        self.write(|write| {
            let nonce = nonce.to_owned();
            Box::pin(async move { challenges::fail(write, &nonce).await })
        })
        .await
    }

    async fn rotate_key(&self, nonce: &str, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
        self.write(|write| {
            let nonce = nonce.to_owned();
            Box::pin(async move { challenges::rotate_key(write, &nonce, key, now).await })
        })
        .await
    }

    async fn scan_mark(&self, chain_id: u64) -> Result<Option<u64>> {
        self.read(move |client| Box::pin(scan_marks::of_chain(client, chain_id))).await
    }

    async fn set_scan_mark(&self, chain_id: u64, block: u64) -> Result<()> {
        self.write(move |write| Box::pin(scan_marks::advance(write, chain_id, block))).await
    }

    async fn register_recipients(&self, configured: Vec<(u64, Address)>, now: Timestamp) -> Result<Vec<Registration>> {
        self.write(move |write| {
            let configured = configured.clone();
            Box::pin(async move { recipients::register(write, &configured, now).await })
        })
        .await
    }

    async fn recipients(&self) -> Result<Vec<RecipientRecord>> {
        self.read(|client| Box::pin(recipients::list(client))).await
    }

    async fn put_unreadable(&self, arrival: UnreadableArrival) -> Result<()> {
        self.write(|write| {
            let arrival = arrival.clone();
            Box::pin(async move { unreadable::put(write, &arrival).await })
        })
        .await
    }

    async fn unreadable(&self, chain_id: u64, from_block: u64, limit: u32) -> Result<Vec<UnreadableArrival>> {
        self.read(move |client| Box::pin(unreadable::of_chain(client, chain_id, from_block, limit))).await
    }

    async fn unreadable_due(&self, chain_id: u64, now: Timestamp, limit: u32) -> Result<Vec<UnreadableArrival>> {
        self.read(move |client| Box::pin(unreadable::due(client, chain_id, now, limit))).await
    }

    async fn forget_unreadable(&self, location: &ArrivalLocation) -> Result<()> {
        let location = *location;
        self.write(move |write| Box::pin(async move { unreadable::forget(write, &location).await })).await
    }
}
