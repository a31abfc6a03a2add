//! The watcher: credits payments that no client claimed.
//!
//! A payment for an open signup quote creates the account; the quote's owner gets the key by a later claim, or by
//! rotation. A payment for an open top-up quote is credited to the quote's account, whichever wallet paid. A payment
//! for a plan, from a wallet that belongs to exactly one account, is credited to that account. All others are left for
//! their payers to claim or the operator to assign: a wrong guess would give money away.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::access::account::{Account, AccountId};
use crate::access::key::ApiKey;
use crate::chains::chain::{Chain, Heights};
use crate::chains::transaction::TxHash;
use crate::error::Error;
use crate::payments::not_before::NotBefore;
use crate::payments::payment::{Arrival, Payment, PaymentError, UnclaimedPayment};
use crate::payments::plan::Plan;
use crate::payments::quote::{Quote, may_be_tagged};
use crate::random::SystemRandomness;
use crate::service::Payments;
use crate::service::payments::arrivals::{Arrivals, arrivals, payment_targets};
use crate::service::payments::state::find_chain;
use crate::service::payments::top_ups::Entitlement;
use crate::store::{Claimed, KeyDelivery};
use crate::wire::TopUpResponse;

/// The most blocks that one call scans.
const CHUNK_BLOCKS: u64 = 500;

/// The result of one scan of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WatchReport {
    /// The last scanned block; `None` when there is none yet.
    pub scanned_to: Option<u64>,
    /// Whether all confirmed blocks have been scanned.
    pub up_to_date: bool,
    /// Quotes that became accounts.
    pub claimed: u32,
    /// Payments credited to accounts.
    pub credited: u32,
    /// Payments not credited, except those that were used before.
    pub left: u32,
    /// Arrivals that could not be read and were set aside.
    pub unreadable: u32,
    /// Whether the next call scans the same blocks again, because an arrival in them may soon be readable.
    pub held: bool,
}

/// The outcome for one payment.
enum ArrivalOutcome {
    Claimed,
    Credited,
    Left,
    UsedBefore,
}

impl Payments<'_> {
    /// Scans the next confirmed blocks of a chain, and credits the payments that it can. The store keeps a mark of the
    /// last final block scanned. Without a mark, the scan starts at `from_block`, or else at the newest confirmed
    /// block. Blocks that a reorganisation replaced are scanned again. Payments that are left are in
    /// [`PaymentStore::unclaimed`](crate::PaymentStore::unclaimed) until an account has them.
    ///
    /// Several processes may watch one chain: each payment counts once.
    ///
    /// This uses the shop and the chain of the example `sell_a_plan`:
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
    /// // The customer pays and never comes back to claim.
    /// chain.pay(customer.address(), quote.recipient.parse()?, quote.amount_atomic.parse()?);
    /// let report = shop.payments().watch(CHAIN_ID, Some(1)).await?;
    /// assert_eq!((report.claimed, report.up_to_date), (1, true));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the chain or the store cannot be read; the next call scans the same blocks again. A single arrival that
    /// cannot be read is not an error: it is recorded and retried later.
    pub async fn watch(self, chain_id: u64, from_block: Option<u64>) -> Result<WatchReport, Error> {
        let chain = find_chain(&self.config.chains, chain_id)?;
        let reader = self.state.reader(chain_id)?;
        let heights = reader.heights().await.map_err(Error::of_chain)?;
        let confirmed = heights.confirmed;
        let mark = self.state.store()?.scan_mark(chain_id).await?;
        let scanned = self.state.positions.scanned_to(chain_id, &**reader, mark).await.map_err(Error::of_chain)?;
        let from = scanned.map_or(from_block.unwrap_or(confirmed), |scanned| scanned.saturating_add(1));
        let due = self.unreadable_due(chain_id).await?;
        let mut report = WatchReport { scanned_to: scanned, up_to_date: true, ..WatchReport::default() };
        if from > confirmed && due.is_empty() {
            return Ok(report);
        }
        let plans = self.state.store()?.plans().await?;
        self.register_recipients_of(&plans).await;
        let targets = payment_targets(self.state.store()?, chain, &plans).await?;
        self.retry_unreadable(chain, &plans, &targets, due, &mut report).await?;
        if from > confirmed {
            return Ok(report);
        }
        if mark.is_none() && from_block.is_none() && from > 0 {
            // A process that restarts before any block is final begins here too.
            self.state.store()?.set_scan_mark(chain_id, from - 1).await?;
        }
        let to = confirmed.min(from.saturating_add(CHUNK_BLOCKS - 1));
        // Read before the scan: if the chain changes meanwhile, the next scan notices.
        let hash = reader.block_hashes(&[to]).await.map_err(Error::of_chain)?.first().copied().flatten();
        let Arrivals { read, unread } = arrivals(&**reader, &targets, from, to).await.map_err(Error::of_chain)?;
        let found: BTreeSet<_> = read.iter().map(|arrival| (arrival.block.number, arrival.tx.hash)).collect();
        for arrival in read {
            self.settle_arrival(chain, &plans, arrival, &mut report).await?;
        }
        self.set_aside(unread, &mut report).await?;
        if report.held {
            return Ok(WatchReport { up_to_date: false, ..report });
        }
        self.forget_removed(chain_id, from..=to, &found).await?;
        self.state.positions.scanned(chain_id, to, hash);
        self.state.forget_failed_rounds(chain_id, to);
        let first = mark.map_or(from_block.unwrap_or(0), |mark| mark.saturating_add(1));
        self.mark_scanned(chain_id, first, to, heights).await?;
        Ok(WatchReport { scanned_to: Some(to), up_to_date: to == confirmed, ..report })
    }

    /// Forgets unclaimed payments that a reorganisation removed: they are not in `found` (block and transaction), and
    /// their block was replaced. If it was not, they are kept: a source may omit arrivals that it had before, and this
    /// process may look for other recipients and tokens than the one that found them.
    async fn forget_removed(
        self,
        chain_id: u64,
        blocks: RangeInclusive<u64>,
        found: &BTreeSet<(u64, TxHash)>,
    ) -> Result<(), Error> {
        let mut gone = self.state.store()?.unclaimed_in(chain_id, blocks).await?;
        gone.retain(|UnclaimedPayment { arrival, .. }| !found.contains(&(arrival.block.number, arrival.tx.hash)));
        let numbers: Vec<u64> = gone.iter().map(|payment| payment.arrival.block.number).collect();
        // Usually there are none.
        if numbers.is_empty() {
            return Ok(());
        }
        let hashes = self.state.reader(chain_id)?.block_hashes(&numbers).await.map_err(Error::of_chain)?;
        let mut hashes = hashes.into_iter();
        gone.retain(|payment| hashes.next().flatten().is_some_and(|hash| hash != payment.arrival.block.hash));
        if !gone.is_empty() {
            self.state.store()?.forget_unclaimed(gone).await?;
        }
        Ok(())
    }

    /// Moves the store's mark to the last final block of a scan. `first` is the first block that was to be scanned.
    async fn mark_scanned(self, chain_id: u64, first: u64, to: u64, heights: Heights) -> Result<(), Error> {
        let last = to.min(heights.finalized);
        if last >= first {
            self.state.store()?.set_scan_mark(chain_id, last).await?;
        }
        Ok(())
    }

    /// Credits an arrival if possible, and counts the result.
    pub(super) async fn settle_arrival(
        self,
        chain: &Chain,
        plans: &[Plan],
        arrival: Arrival,
        report: &mut WatchReport,
    ) -> Result<(), Error> {
        let settled = match &arrival.payment {
            Ok(payment) => self.credit_or_leave(chain, plans, payment.clone()).await?,
            Err(_) => ArrivalOutcome::Left,
        };
        match settled {
            ArrivalOutcome::Claimed => report.claimed += 1,
            ArrivalOutcome::Credited => report.credited += 1,
            ArrivalOutcome::Left => {
                tracing::info!(tx = %arrival.tx, "a payment arrived that nobody claimed; metering admin payments list shows it");
                report.left += 1;
                let unclaimed = UnclaimedPayment { arrival, seen_at: self.access.now() };
                self.state.store()?.put_unclaimed(unclaimed).await?;
            }
            ArrivalOutcome::UsedBefore => {}
        }
        Ok(())
    }

    async fn credit_or_leave(self, chain: &Chain, plans: &[Plan], payment: Payment) -> Result<ArrivalOutcome, Error> {
        if self.state.store()?.payment(&payment.tx).await?.is_some() {
            return Ok(ArrivalOutcome::UsedBefore);
        }
        let is_early = |first: NotBefore| first.check(payment.block_number, payment.mined_at).is_err();
        if self.configured_not_before(chain.chain_id).is_some_and(is_early) {
            return Ok(ArrivalOutcome::Left);
        }
        if let Some(quote) = self.state.store()?.quote_paid_by(&payment).await? {
            if let Some(account) = &quote.top_up {
                if let Some(settled) = self.settle_top_up_quote(account, &quote, &payment).await? {
                    return Ok(settled);
                }
            } else if let Some(settled) = self.settle_quote(&quote, &payment).await? {
                return Ok(settled);
            }
        }
        let Some((account, entitlement)) = self.owner_of(&payment).await? else { return Ok(ArrivalOutcome::Left) };
        let Some(plan) = plan_paid_by(plans, chain, &payment) else { return Ok(ArrivalOutcome::Left) };
        if is_early(self.not_before(&payment.target()).await?) {
            return Ok(ArrivalOutcome::Left);
        }
        outcome_of(self.credit(&account, plan, payment, entitlement).await, &account)
    }

    /// Credits a payment to the account whose top-up quote has its amount, from any wallet. `None` when another payment
    /// of the quote came first.
    async fn settle_top_up_quote(
        self,
        account: &AccountId,
        quote: &Quote,
        payment: &Payment,
    ) -> Result<Option<ArrivalOutcome>, Error> {
        let Some(account) = self.account_to_top_up(account).await? else { return Ok(Some(ArrivalOutcome::Left)) };
        match self.credit_quote(&account, quote, payment.clone()).await {
            Err(Error::Payment(refused)) if matches!(*refused, PaymentError::Reserved) => Ok(None),
            credited => outcome_of(credited, &account).map(Some),
        }
    }

    /// `None` when the quote cannot be claimed after all, because its payer has an account by now.
    async fn settle_quote(self, quote: &Quote, payment: &Payment) -> Result<Option<ArrivalOutcome>, Error> {
        // This key is never shown; the quote's owner gets a new one.
        let key = ApiKey::generate(&SystemRandomness);
        let claim = self.claim_of(quote, payment.clone(), &key, KeyDelivery::Later).await?;
        Ok(match self.claim_by_nonce(claim).await? {
            Claimed::Account(account) => {
                tracing::info!(account = %account.id, tx = %payment.tx, "a quote was paid; its account was created, unclaimed");
                Some(ArrivalOutcome::Claimed)
            }
            Claimed::AlreadyClaimed | Claimed::TxUsed => Some(ArrivalOutcome::UsedBefore),
            Claimed::NoSuchQuote | Claimed::PayerTaken => None,
            Claimed::OutOfRange => return Err(Error::Internal),
        })
    }

    /// The one account that a payment's wallet belongs to: the wallet paid for its signup, or is linked to it and no
    /// other. `None` for a contract's payment, which others may have made through it.
    async fn owner_of(self, payment: &Payment) -> Result<Option<(Account, Entitlement)>, Error> {
        if self.is_from_contract(payment).await? {
            return Ok(None);
        }
        if let Some(account) = self.state.store()?.account_by_payer(&payment.payer).await? {
            return Ok(Some((account, Entitlement::OWN_WALLET)));
        }
        let [account] = &*self.state.store()?.linked_accounts(&payment.payer).await? else { return Ok(None) };
        let account = self.access.store.account(account).await?;
        Ok(account.map(|account| (account, Entitlement::AFTER_QUOTES)))
    }
}

/// The outcome of crediting a payment to an account.
fn outcome_of(credited: Result<TopUpResponse, Error>, account: &Account) -> Result<ArrivalOutcome, Error> {
    match credited {
        Ok(response) if response.already_credited => Ok(ArrivalOutcome::UsedBefore),
        Ok(response) => {
            let plan = response.plan_id;
            tracing::info!(account = %account.id, plan, "the watcher credited a payment that nobody claimed");
            Ok(ArrivalOutcome::Credited)
        }
        Err(Error::Payment(refused)) if matches!(*refused, PaymentError::TxUsed) => Ok(ArrivalOutcome::UsedBefore),
        Err(Error::Payment(_) | Error::Unauthorized) => Ok(ArrivalOutcome::Left),
        Err(error) => Err(error),
    }
}

/// The plan on sale that a payment was made for: the amount is its price, exactly or with a quote's tag. If several
/// match, the most expensive one; of equal ones, the one with the most credits.
fn plan_paid_by<'a>(plans: &'a [Plan], chain: &Chain, payment: &Payment) -> Option<&'a Plan> {
    let fits = |plan: &&Plan| {
        let of_price = plan.price().is_some_and(|price| may_be_tagged(price, plan.token_decimals, payment.amount));
        plan.active && plan.target(chain) == payment.target() && of_price
    };
    let rank = |plan: &&Plan| (plan.price(), plan.credits_in_all());
    plans.iter().filter(|plan| plan.chain_id == chain.chain_id).filter(fits).max_by_key(rank)
}
