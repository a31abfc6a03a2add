/// Implements [`PaymentStore`](metering_core::PaymentStore).
#[macro_export]
macro_rules! payment_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::access::KeyHash;
            use $crate::private::metering_core::chains::{Address, TxHash, TxRef};
            use $crate::private::metering_core::payments::*;
            use $crate::private::metering_core::store::*;
            use $crate::private::metering_core::{Account, AccountId, StoreError, Timestamp};
            use $crate::{read, shared, snapshot, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::PaymentStore for $store {
                async fn plans(&self) -> Result<Vec<Plan>> {
                    read(self, (), |db, ()| shared($crate::plans::list(db))).await
                }

                async fn put_plans(&self, plans: Vec<Plan>) -> Result<()> {
                    write(self, plans, |db, plans| shared($crate::plans::put(db, plans))).await
                }

                async fn remove_plan(&self, key: &PlanKey) -> Result<bool> {
                    write(self, key.clone(), |db, key| shared($crate::plans::remove(db, key))).await
                }

                async fn set_plan_active(&self, key: &PlanKey, active: bool) -> Result<bool> {
                    let args = (key.clone(), active);
                    write(self, args, |db, (key, active)| shared($crate::plans::set_active(db, key, *active))).await
                }

                async fn open_quote(&self, quote: Quote) -> Result<QuoteOpened> {
                    write(self, quote, |db, quote| shared($crate::quotes::open(db, quote))).await
                }

                async fn quote(&self, nonce: &NonceHash) -> Result<Option<Quote>> {
                    read(self, *nonce, |db, nonce| shared($crate::quotes::by_nonce(db, nonce))).await
                }

                async fn quote_paid_by(&self, payment: &Payment) -> Result<Option<Quote>> {
                    read(self, payment.clone(), |db, payment| shared($crate::quotes::paid_by(db, payment))).await
                }

                async fn top_up_quotes(&self, account: &AccountId) -> Result<Vec<Quote>> {
                    read(self, account.clone(), |db, account| shared($crate::quotes::top_ups(db, account))).await
                }

                async fn quoted_targets(&self, chain_id: u64) -> Result<Vec<PaymentTarget>> {
                    read(self, chain_id, |db, chain_id| shared($crate::quotes::targets(db, *chain_id))).await
                }

                async fn claim_quote(&self, claim: Claim) -> Result<Claimed> {
                    write(self, claim, |db, claim| shared($crate::claims::claim(db, claim))).await
                }

                async fn credit_payment(&self, credit: PaymentCredit) -> Result<PaymentCredited> {
                    write(self, credit, |db, credit| shared($crate::payments::credit(db, credit))).await
                }

                async fn payment(&self, tx: &TxRef) -> Result<Option<PaymentRecord>> {
                    read(self, *tx, |db, tx| shared($crate::payments::by_tx(db, tx))).await
                }

                async fn payments(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<PaymentRecord>> {
                    let args = (after.cloned(), limit);
                    read(self, args, |db, (after, limit)| shared($crate::payments::list(db, after.as_ref(), *limit)))
                        .await
                }

                async fn unsettled_payments(
                    &self,
                    chain_id: u64,
                    after: Option<&Cursor>,
                    limit: u32,
                ) -> Result<Page<PaymentRecord>> {
                    let args = (chain_id, after.cloned(), limit);
                    read(self, args, |db, (chain_id, after, limit)| {
                        shared($crate::settlements::unsettled(db, *chain_id, after.as_ref(), *limit))
                    })
                    .await
                }

                async fn settle_payment(&self, change: SettlementChange) -> Result<PaymentSettled> {
                    write(self, change, |db, change| shared($crate::settlements::settle(db, change))).await
                }

                async fn credit_processor_payment(
                    &self,
                    credit: PaymentCredit,
                    processor: ProcessorRef,
                ) -> Result<PaymentCredited> {
                    let args = (credit, processor);
                    write(self, args, |db, (credit, processor)| {
                        shared($crate::processors::credit(db, credit, processor))
                    })
                    .await
                }

                async fn reverse_processor_payment(&self, change: ReversalChange) -> Result<ProcessorReversed> {
                    write(self, change, |db, change| shared($crate::processors::reverse(db, change))).await
                }

                async fn processor_reversals(&self, payment: &TxHash) -> Result<Vec<ProcessorReversal>> {
                    read(self, *payment, |db, payment| shared($crate::processors::reversals(db, payment))).await
                }

                async fn auto_top_up(&self, account: &AccountId) -> Result<Option<AutoTopUp>> {
                    read(self, account.clone(), |db, account| shared($crate::auto_top_ups::of_account(db, account)))
                        .await
                }

                async fn set_auto_top_up(&self, account: &AccountId, change: AutoTopUpChange) -> Result<AutoTopUpSet> {
                    let args = (account.clone(), change);
                    write(self, args, |db, (account, change)| shared($crate::auto_top_ups::set(db, account, change)))
                        .await
                }

                async fn stop_top_ups(&self, account: &AccountId, reason: TopUpStop, now: Timestamp) -> Result<()> {
                    let args = (account.clone(), reason, now);
                    write(self, args, |db, (account, reason, now)| {
                        shared($crate::auto_top_ups::stop(db, account, *reason, *now))
                    })
                    .await
                }

                async fn due_top_ups(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<AutoTopUp>> {
                    let args = (after.cloned(), limit);
                    read(self, args, |db, (after, limit)| shared($crate::auto_top_ups::due(db, after.as_ref(), *limit)))
                        .await
                }

                async fn begin_top_up(
                    &self,
                    account: &AccountId,
                    id: TopUpChargeId,
                    now: Timestamp,
                ) -> Result<Option<TopUpCharge>> {
                    let args = (account.clone(), id, now);
                    write(self, args, |db, (account, id, now)| {
                        shared($crate::auto_top_ups::begin(db, account, *id, *now))
                    })
                    .await
                }

                async fn open_top_ups(&self, limit: u32) -> Result<Vec<TopUpCharge>> {
                    read(self, limit, |db, limit| shared($crate::auto_top_ups::open(db, *limit))).await
                }

                async fn top_up_charges(&self, account: &AccountId, since: Timestamp) -> Result<Vec<TopUpCharge>> {
                    let args = (account.clone(), since);
                    read(self, args, |db, (account, since)| {
                        shared($crate::auto_top_ups::charges_since(db, account, *since))
                    })
                    .await
                }

                async fn end_top_up(&self, id: TopUpChargeId, end: TopUpEnd, now: Timestamp) -> Result<bool> {
                    let args = (id, end, now);
                    write(self, args, |db, (id, end, now)| shared($crate::auto_top_ups::end(db, *id, end, *now))).await
                }

                async fn linked_accounts(&self, wallet: &Address) -> Result<Vec<AccountId>> {
                    read(self, *wallet, |db, wallet| shared($crate::wallets::accounts_of(db, wallet))).await
                }

                async fn linked_wallets(&self, account: &AccountId) -> Result<Vec<Address>> {
                    read(self, account.clone(), |db, account| shared($crate::wallets::of_account(db, account))).await
                }

                async fn buyers(&self, account: &AccountId) -> Result<Vec<BuyerRecord>> {
                    read(self, account.clone(), |db, account| shared($crate::buyers::list(db, account))).await
                }

                async fn set_buyer(&self, account: &AccountId, buyer: Option<Buyer>, now: Timestamp) -> Result<bool> {
                    let args = (account.clone(), buyer, now);
                    write(self, args, |db, (account, buyer, now)| {
                        shared($crate::buyers::set(db, account, buyer.as_ref(), *now))
                    })
                    .await
                }

                async fn add_receipt_buyer(
                    &self,
                    account: &AccountId,
                    bought_at: Timestamp,
                ) -> Result<ReceiptBuyerAdded> {
                    let args = (account.clone(), bought_at);
                    write(self, args, |db, (account, bought_at)| {
                        shared($crate::buyers::add_to_receipt(db, account, *bought_at))
                    })
                    .await
                }

                async fn set_receipt_terms(&self, terms: ReceiptTerms, now: Timestamp) -> Result<()> {
                    write(self, (terms, now), |db, (terms, now)| shared($crate::receipts::set_terms(db, terms, *now)))
                        .await
                }

                async fn receipt_terms(&self) -> Result<Vec<ReceiptTermsRecord>> {
                    read(self, (), |db, ()| shared($crate::receipts::terms(db))).await
                }

                async fn issued_receipts(&self, account: &AccountId) -> Result<Vec<IssuedReceipt>> {
                    read(self, account.clone(), |db, account| shared($crate::receipts::of_account(db, account))).await
                }

                async fn open_challenge(&self, challenge: Challenge) -> Result<()> {
                    write(self, challenge, |db, challenge| shared($crate::challenges::open(db, challenge))).await
                }

                async fn challenge(&self, nonce: &str) -> Result<Option<Challenge>> {
                    read(self, nonce.to_owned(), |db, nonce| shared($crate::challenges::by_nonce(db, nonce))).await
                }

                async fn fail_challenge(&self, nonce: &str) -> Result<()> {
                    write(self, nonce.to_owned(), |db, nonce| shared($crate::challenges::fail(db, nonce))).await
                }

                async fn rotate_key(&self, nonce: &str, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
                    let args = (nonce.to_owned(), key, now);
                    write(self, args, |db, (nonce, key, now)| {
                        shared($crate::challenges::rotate_key(db, nonce, key, *now))
                    })
                    .await
                }

                async fn account_by_payer(&self, payer: &Address) -> Result<Option<Account>> {
                    read(self, *payer, |db, payer| shared($crate::accounts::by_payer(db, payer))).await
                }

                async fn scan_mark(&self, chain_id: u64) -> Result<Option<u64>> {
                    read(self, chain_id, |db, chain_id| shared($crate::scan_marks::of_chain(db, *chain_id))).await
                }

                async fn set_scan_mark(&self, chain_id: u64, block: u64) -> Result<()> {
                    let args = (chain_id, block);
                    write(self, args, |db, &(chain_id, block)| shared($crate::scan_marks::advance(db, chain_id, block)))
                        .await
                }

                async fn register_recipients(
                    &self,
                    configured: Vec<(u64, Address)>,
                    now: Timestamp,
                ) -> Result<Vec<Registration>> {
                    let args = (configured, now);
                    write(self, args, |db, (configured, now)| {
                        shared($crate::recipients::register(db, configured, *now))
                    })
                    .await
                }

                async fn recipients(&self) -> Result<Vec<RecipientRecord>> {
                    read(self, (), |db, ()| shared($crate::recipients::list(db))).await
                }

                async fn put_unreadable(&self, arrival: UnreadableArrival) -> Result<()> {
                    write(self, arrival, |db, arrival| shared($crate::unreadable::put(db, arrival))).await
                }

                async fn unreadable(
                    &self,
                    chain_id: u64,
                    from_block: u64,
                    limit: u32,
                ) -> Result<Vec<UnreadableArrival>> {
                    let args = (chain_id, from_block, limit);
                    read(self, args, |db, &(chain, from, limit)| {
                        shared($crate::unreadable::of_chain(db, chain, from, limit))
                    })
                    .await
                }

                async fn unreadable_due(
                    &self,
                    chain_id: u64,
                    now: Timestamp,
                    limit: u32,
                ) -> Result<Vec<UnreadableArrival>> {
                    let args = (chain_id, now, limit);
                    read(self, args, |db, &(chain, now, limit)| shared($crate::unreadable::due(db, chain, now, limit)))
                        .await
                }

                async fn forget_unreadable(&self, location: &ArrivalLocation) -> Result<()> {
                    write(self, *location, |db, location| shared($crate::unreadable::forget(db, location))).await
                }

                async fn put_unclaimed(&self, payment: UnclaimedPayment) -> Result<()> {
                    write(self, payment, |db, payment| shared($crate::unclaimed::put(db, payment))).await
                }

                async fn unclaimed(&self, after: Option<&Cursor>, limit: u32) -> Result<(Page<UnclaimedPayment>, u64)> {
                    let args = (after.cloned(), limit);
                    snapshot(self, args, |db, (after, limit)| {
                        shared($crate::unclaimed::newest(db, after.as_ref(), *limit))
                    })
                    .await
                }

                async fn unclaimed_in(
                    &self,
                    chain_id: u64,
                    blocks: ::core::ops::RangeInclusive<u64>,
                ) -> Result<Vec<UnclaimedPayment>> {
                    read(self, (chain_id, blocks), |db, (chain, blocks)| {
                        shared($crate::unclaimed::in_blocks(db, *chain, blocks))
                    })
                    .await
                }

                async fn forget_unclaimed(&self, gone: Vec<UnclaimedPayment>) -> Result<()> {
                    write(self, gone, |db, gone| shared($crate::unclaimed::forget(db, gone))).await
                }
            }
        };
    };
}
