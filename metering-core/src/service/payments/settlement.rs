//! Settles payments that were credited before their block was final.
//!
//! The pure function [`decide`] chooses the next step, and one atomic operation of the store performs it. If several
//! nodes see the same, only one of them changes the record. Payments that cannot be read are checked again next time.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use crate::chains::chain::{BlockHash, ChainReader, Heights};
use crate::error::Error;
use crate::payments::payment::{
    ChainView, PaymentRecord, PaymentSettlement, PaymentUse, SettlementDecision, SettlementStep, decide,
};
use crate::service::Payments;
use crate::store::{PaymentSettled, SettlementChange};

/// How many records to read from the store at a time.
const PAGE: u32 = 500;
/// How long to look for a reversed payment. After that, its owner can still register it again.
const REVERSED_PAYMENT_WATCH: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The result of one check of a chain's credited payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SettlementReport {
    /// Payments that are still unsettled.
    pub unsettled: u64,
    /// Unsettled payments that are missing in their final block: a source invented or lost them.
    pub doubtful: u64,
    /// Payments that are reversed, now or from earlier checks.
    pub reversed: u64,
    /// Payments that became final in this check.
    pub finalized: u32,
    /// Payments whose credits this check took back.
    pub newly_reversed: u32,
    /// Payments whose credits this check restored.
    pub restored: u32,
}

impl Payments<'_> {
    /// Checks every credited payment of a chain that is not final: makes it final, reverses it if a reorganisation
    /// removed it, or credits it again if it was mined after all. Call this regularly for each chain that payments are
    /// credited on; several processes may do so.
    ///
    /// With the shop and the chain of the example `sell_a_plan`, where a block is final at its third confirmation:
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/doc_test.rs"));
    /// # use in_memory::{CHAIN_ID, MemoryChain};
    /// # use std::sync::Arc;
    /// #
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let chain = Arc::new(MemoryChain::default());
    /// # let (shop, customer, quote) = shop::quoted(&chain).await?;
    /// # chain.pay(customer.address(), quote.recipient.parse()?, quote.amount_atomic.parse()?);
    /// # shop.payments().watch(CHAIN_ID, Some(1)).await?;
    /// let report = shop.payments().settle(CHAIN_ID).await?; // a payment was just credited
    /// assert_eq!((report.unsettled, report.finalized), (1, 0));
    /// chain.grow(2);
    /// let report = shop.payments().settle(CHAIN_ID).await?;
    /// assert_eq!((report.unsettled, report.finalized), (0, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the chain or the store cannot be read. The payments do not change until the next check.
    pub async fn settle(self, chain_id: u64) -> Result<SettlementReport, Error> {
        let reader = self.state.reader(chain_id)?;
        let (mut report, mut after) = (SettlementReport::default(), None);
        loop {
            let page = self.state.store()?.unsettled_payments(chain_id, after.as_ref(), PAGE).await?;
            if !page.items.is_empty() {
                self.settle_page(&**reader, page.items, &mut report).await?;
            }
            after = page.next;
            if after.is_none() {
                return Ok(report);
            }
        }
    }

    async fn settle_page(
        self,
        reader: &dyn ChainReader,
        records: Vec<PaymentRecord>,
        report: &mut SettlementReport,
    ) -> Result<(), Error> {
        let oldest_reversal = self.access.now().saturating_sub(REVERSED_PAYMENT_WATCH);
        let (watched, given_up): (Vec<_>, Vec<_>) = records
            .into_iter()
            .partition(|record| record.settlement.reversed_at().is_none_or(|at| at >= oldest_reversal));
        report.reversed += u64::try_from(given_up.len()).unwrap_or(u64::MAX);
        if watched.is_empty() {
            return Ok(());
        }
        let heights = reader.heights().await.map_err(Error::of_chain)?;
        let canonical = canonical_hashes(reader, &watched).await?;
        for record in watched {
            let hash = canonical.get(&record.payment.block_number).copied().flatten();
            let seen = match ChainView::in_place(&record, hash) {
                Some(_) if record.payment.block_number <= heights.finalized => {
                    self.confirm(reader, &record, report).await
                }
                Some(seen) => seen,
                None => self.read_again(reader, &record, hash).await,
            };
            self.settle_one(record, seen, heights, report).await?;
        }
        Ok(())
    }

    /// Reads a payment's transaction, when its block is no longer in the chain or sources disagree about the block.
    async fn read_again(self, reader: &dyn ChainReader, record: &PaymentRecord, hash: Option<BlockHash>) -> ChainView {
        let tx = record.payment.tx;
        match reader.transaction(&tx.hash).await {
            Ok(status) => ChainView::of(record, hash, &status),
            Err(error) => {
                tracing::debug!(%tx, %error, "a credited payment could not be checked; trying again");
                ChainView::Unclear
            }
        }
    }

    /// Reads a payment's transaction for the last time, before it becomes final. A missing one stays unsettled and is
    /// not reversed: its source may have lied when it was credited, or may have deleted old receipts since.
    async fn confirm(
        self,
        reader: &dyn ChainReader,
        record: &PaymentRecord,
        report: &mut SettlementReport,
    ) -> ChainView {
        let tx = record.payment.tx;
        let confirmed = match reader.transaction(&tx.hash).await {
            Ok(status) => ChainView::is_confirmed_by(record, &status),
            Err(error) => {
                tracing::debug!(%tx, %error, "a credited payment could not be confirmed; trying again");
                return ChainView::Unclear;
            }
        };
        let mut doubtful = self.state.doubtful.lock().unwrap_or_else(PoisonError::into_inner);
        if confirmed {
            doubtful.remove(&tx);
            return ChainView::InPlace;
        }
        report.doubtful += 1;
        if doubtful.insert(tx) {
            tracing::error!(
                %tx, account = %record.account, block = record.payment.block_number,
                "a credited payment is not in its block, which is final: look it up in a block explorer; if it does not \
                 exist, an RPC source invented it: take its credits back with `metering admin account adjust`"
            );
        }
        ChainView::Unclear
    }

    async fn settle_one(
        self,
        record: PaymentRecord,
        seen: ChainView,
        heights: Heights,
        report: &mut SettlementReport,
    ) -> Result<(), Error> {
        let tx = record.payment.tx;
        let missing_since = self.state.missing.lock().unwrap_or_else(PoisonError::into_inner).get(&tx).copied();
        let decision = decide(&record, seen, heights, missing_since);
        if let (SettlementDecision::Wait { .. }, PaymentUse::Authorization, Some(payments)) =
            (&decision, record.used_as, self.request_payments)
        {
            payments.send_again(tx).await;
        }
        let step = {
            let mut missing = self.state.missing.lock().unwrap_or_else(PoisonError::into_inner);
            match decision {
                SettlementDecision::Wait { missing_since } => {
                    if missing.insert(tx, missing_since).is_none() {
                        tracing::info!(%tx, "a credited payment is missing from its chain; waiting for it to be mined again");
                    }
                    None
                }
                SettlementDecision::Keep => {
                    missing.remove(&tx);
                    None
                }
                SettlementDecision::Step(step) => {
                    missing.remove(&tx);
                    Some(step)
                }
            }
        };
        let settlement = match step {
            Some(step) => self.take_step(record, step, report).await?,
            None => record.settlement,
        };
        match settlement {
            PaymentSettlement::Unsettled => report.unsettled += 1,
            PaymentSettlement::Reversed { .. } => report.reversed += 1,
            PaymentSettlement::Final => {}
        }
        Ok(())
    }

    /// Takes a step, and returns the payment's settlement after it.
    async fn take_step(
        self,
        record: PaymentRecord,
        step: SettlementStep,
        report: &mut SettlementReport,
    ) -> Result<PaymentSettlement, Error> {
        let (tx, before, now) = (record.payment.tx, record.settlement, self.access.now());
        let after = record.after(&step, now).map_or(before, |record| record.settlement);
        let change = SettlementChange { seen: record, step: step.clone(), now };
        let account = match self.state.store()?.settle_payment(change).await? {
            PaymentSettled::Changed(account) => account,
            // Another node settled it first.
            PaymentSettled::Stale => return Ok(before),
            PaymentSettled::OutOfRange => {
                tracing::error!(%tx, "a reorganisation would put a balance out of range; correct it by hand");
                return Ok(before);
            }
        };
        let balance = account.totals.balance;
        match step {
            SettlementStep::Finalize => report.finalized += 1,
            SettlementStep::Move(block) => {
                tracing::info!(%tx, block = block.number, "a credited payment was mined again in another block");
            }
            SettlementStep::Reverse => {
                report.newly_reversed += 1;
                tracing::warn!(
                    %tx, account = %account.id, %balance,
                    "a reorganisation removed a credited payment; its credits were taken back"
                );
            }
            SettlementStep::Restore(block) => {
                report.restored += 1;
                tracing::warn!(
                    %tx, account = %account.id, %balance, block = block.number,
                    "a reversed payment was mined again; its credits were restored"
                );
            }
        }
        Ok(after)
    }
}

/// The hash of the chain's current block at each payment's height.
async fn canonical_hashes(
    reader: &dyn ChainReader,
    records: &[PaymentRecord],
) -> Result<HashMap<u64, Option<BlockHash>>, Error> {
    let mut numbers: Vec<u64> = records.iter().map(|record| record.payment.block_number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let hashes = reader.block_hashes(&numbers).await.map_err(Error::of_chain)?;
    Ok(numbers.into_iter().zip(hashes).collect())
}
