//! Implements the payment part of the storage contract. Each method runs in a transaction.

use crate::access::wallets;
use crate::payments::{claims, quotes, records, settlements};
use crate::store::PostgresStore;

metering_sql::payment_store! {
    PostgresStore {
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

        async fn linked_accounts(&self, wallet: &Address) -> Result<Vec<AccountId>> {
            let wallet = *wallet;
            self.read(move |client| Box::pin(async move { wallets::accounts_of(client, &wallet).await })).await
        }
    }
}
