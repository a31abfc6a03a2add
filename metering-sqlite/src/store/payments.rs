//! Implements the payment part of the storage contract. Each method goes to the writer or to a reader.

use crate::access::wallets;
use crate::payments::{claims, quotes, records, settlements};
use crate::store::SqliteStore;

metering_sql::payment_store! {
    SqliteStore {
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

        async fn linked_accounts(&self, wallet: &Address) -> Result<Vec<AccountId>> {
            let wallet = *wallet;
            self.read(move |connection| wallets::accounts_of(connection, &wallet)).await
        }
    }
}
