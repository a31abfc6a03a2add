//! What the service needs to sell: chain readers, settings, and limits on waiting requests.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;

use crate::access::account::AccountId;
use crate::chains::address::Address;
use crate::chains::chain::{
    AccountCode, Chain, ChainError, ChainReader, Depth, Evidence, PendingTransaction, TransactionStatus,
};
use crate::chains::transaction::TxRef;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::payments::payment::{ArrivalLocation, Payment, PaymentError, PaymentFault, PaymentTarget};
use crate::payments::plan::{PaymentKind, Plan};
use crate::payments::quote::NonceHash;
use crate::payments::recipient::Registration;
use crate::service::PaymentSettings;
use crate::service::payments::position::Positions;
use crate::service::payments::seen_payments::SeenPayments;
use crate::store::PaymentStore;
use crate::wire::PlansDocument;

/// How many requests may wait for confirmations of a mined payment. More would hold too many connections. Requests that
/// need no wait take no permit, so those who did not pay cannot keep others from claiming.
const MAX_WAITING: usize = 256;
/// How many requests may wait for a transaction that is in no block yet. Such a transaction costs nothing, so these
/// waits have their own permits and cannot use up those for mined payments.
const MAX_WAITING_UNMINED: usize = 64;
/// How many requests of one quote or one account may wait at a time.
const MAX_WAITING_PER_CALLER: u32 = 2;
/// How many chain reads may run at a time; more are queued.
const MAX_CHAIN_READS: usize = 256;
/// How long to look for an unknown transaction: a node may lag behind the node that received it.
const UNKNOWN_TX_TIMEOUT: Duration = Duration::from_secs(4);

/// The plans on sale, and when they were read.
pub(in crate::service) type PlansCache = Mutex<Option<(Timestamp, Arc<PlansDocument>)>>;

/// Chain readers and settings, from [`Service::with_payments`](crate::Service::with_payments), and the state of the
/// requests and watchers that use them.
pub(in crate::service) struct PaymentState {
    /// `None` when the service sells nothing.
    store: Option<Arc<dyn PaymentStore>>,
    readers: BTreeMap<u64, Arc<dyn ChainReader>>,
    pub(in crate::service) settings: PaymentSettings,
    waiting: Semaphore,
    waiting_unmined: Semaphore,
    /// The number of waiting requests of each caller.
    callers: Mutex<HashMap<Claimant, u32>>,
    chain_reads: Semaphore,
    /// True once all waits must end.
    closing: watch::Sender<bool>,
    /// The last scanned block of each chain.
    pub(super) positions: Positions,
    /// Credited payments that are missing from their chain, and since which block.
    pub(super) missing: Mutex<HashMap<TxRef, u64>>,
    /// Credited payments that are not in their block although it is final.
    pub(super) doubtful: Mutex<HashSet<TxRef>>,
    /// How many rounds of the watcher failed to read each arrival.
    failed_rounds: Mutex<HashMap<ArrivalLocation, u32>>,
    /// Tokens whose contract confirmed the plan's decimals.
    confirmed: Mutex<HashSet<(u64, Address, u8)>>,
    /// Payments in the newest blocks.
    pub(super) sightings: SeenPayments,
    /// When the store first recorded each recipient, by chain.
    recipients: Mutex<BTreeMap<(u64, Address), Timestamp>>,
}

impl fmt::Debug for PaymentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaymentState").field("readers", &self.readers).finish_non_exhaustive()
    }
}

impl Default for PaymentState {
    fn default() -> Self {
        Self::new(None, BTreeMap::new(), PaymentSettings::default())
    }
}

impl PaymentState {
    pub(in crate::service) fn new(
        store: Option<Arc<dyn PaymentStore>>,
        readers: BTreeMap<u64, Arc<dyn ChainReader>>,
        settings: PaymentSettings,
    ) -> Self {
        Self {
            store,
            readers,
            settings,
            waiting: Semaphore::new(MAX_WAITING),
            waiting_unmined: Semaphore::new(MAX_WAITING_UNMINED),
            callers: Mutex::default(),
            chain_reads: Semaphore::new(MAX_CHAIN_READS),
            closing: watch::Sender::new(false),
            positions: Positions::default(),
            missing: Mutex::default(),
            doubtful: Mutex::default(),
            failed_rounds: Mutex::default(),
            confirmed: Mutex::default(),
            sightings: SeenPayments::default(),
            recipients: Mutex::default(),
        }
    }

    /// The store of payments, if the service sells plans.
    pub(in crate::service) fn store(&self) -> Result<&dyn PaymentStore, PaymentError> {
        self.store.as_deref().ok_or(PaymentError::NotConfigured)
    }

    pub(in crate::service) fn readers(&self) -> &BTreeMap<u64, Arc<dyn ChainReader>> {
        &self.readers
    }

    /// When the store first recorded a recipient; `None` if it is not registered.
    pub(super) fn known_since(&self, recipient: &(u64, Address)) -> Option<Timestamp> {
        self.recipients.lock().unwrap_or_else(PoisonError::into_inner).get(recipient).copied()
    }

    pub(super) fn remember(&self, registration: &Registration) {
        let Registration { chain_id, recipient, since, .. } = registration;
        self.recipients.lock().unwrap_or_else(PoisonError::into_inner).insert((*chain_id, *recipient), *since);
    }

    /// The reader of a chain.
    pub(super) fn reader(&self, chain_id: u64) -> Result<&Arc<dyn ChainReader>, PaymentError> {
        self.readers.get(&chain_id).ok_or(PaymentError::NotConfigured)
    }

    /// Checks a plan's decimals against its token's contract, once. With wrong decimals the price would be off by
    /// orders of magnitude.
    pub(super) async fn confirm_token(&self, plan: &Plan) -> Result<(), PaymentError> {
        let facts = (plan.chain_id, plan.token_contract, plan.token_decimals);
        let reader = self.reader(plan.chain_id)?;
        let known = || self.confirmed.lock().unwrap_or_else(PoisonError::into_inner).contains(&facts);
        if plan.payment_kind == PaymentKind::NativeValue || known() {
            return Ok(());
        }
        match reader.token_decimals(plan.token_contract).await.map_err(PaymentError::Chain)? {
            Some(decimals) if decimals == plan.token_decimals => {
                self.confirmed.lock().unwrap_or_else(PoisonError::into_inner).insert(facts);
                Ok(())
            }
            found => {
                tracing::error!(
                    plan = %plan.key(), token = %plan.token_contract, expected = plan.token_decimals, ?found,
                    "the plan is not sold: its decimals differ from those of its token's contract"
                );
                Err(PaymentError::NotConfigured)
            }
        }
    }

    /// Polls a transaction until `judge` accepts it, refuses it permanently, or the wait ends.
    ///
    /// A pending transaction that certainly cannot pay `target` is refused at once.
    pub(super) async fn await_payment(
        &self,
        caller: Claimant,
        tx: TxRef,
        target: PaymentTarget,
        judge: impl Fn(&Evidence) -> Result<Payment, PaymentFault>,
    ) -> Result<Payment, Error> {
        let reader = self.reader(tx.chain_id)?;
        let (mut caller_permit, mut wait_permit) = (None, None);
        let started_at = Instant::now();
        let mut seen_before = false;
        loop {
            let waited = started_at.elapsed();
            let refusal = match self.read_transaction(reader, &tx).await {
                // Too large to read, and waiting will not change that.
                Err(error @ ChainError::Unreadable(_)) => return Err(PaymentError::Chain(error).into()),
                // Before the transaction has been seen, report the failure to the client; afterwards keep waiting.
                Err(error) if !seen_before => return Err(PaymentError::Chain(error).into()),
                Err(error) => PaymentError::Chain(error),
                Ok(TransactionStatus::Unknown) if waited >= UNKNOWN_TX_TIMEOUT && !seen_before => {
                    return Err(PaymentError::TxNotFound.into());
                }
                Ok(TransactionStatus::Unknown) => PaymentError::TxNotFound,
                Ok(TransactionStatus::Pending { required, transaction }) => {
                    if let Some(pending) = transaction.filter(|_| !seen_before)
                        && let Some(fault) = predicted_fault(reader, target, &pending, &judge).await
                    {
                        return Err(PaymentError::Unfit(fault).into());
                    }
                    seen_before = true;
                    PaymentError::Unfit(PaymentFault::Unconfirmed(Depth { confirmations: 0, required }))
                }
                Ok(TransactionStatus::Mined(evidence)) => match judge(&evidence) {
                    Ok(payment) => return Ok(payment),
                    Err(fault @ PaymentFault::Unconfirmed(_)) => {
                        seen_before = true;
                        PaymentError::Unfit(fault)
                    }
                    Err(fault) => return Err(PaymentError::Unfit(fault).into()),
                },
            };
            if caller_permit.is_none() {
                caller_permit = self.acquire_caller_permit(&caller);
            }
            wait_permit = self.wait_permit(wait_permit, &refusal);
            if waited >= self.settings.claim_wait
                || caller_permit.is_none()
                || wait_permit.is_none()
                || *self.closing.borrow()
            {
                return Err(refusal.into());
            }
            self.pause(started_at).await;
        }
    }

    /// The permit already held, or a new one. Once the payment is mined, it is a permit for mined payments.
    fn wait_permit<'p>(&'p self, held: Option<WaitPermit<'p>>, refusal: &PaymentError) -> Option<WaitPermit<'p>> {
        let mined = matches!(refusal, PaymentError::Unfit(PaymentFault::Unconfirmed(depth)) if depth.confirmations > 0);
        match held {
            Some(permit @ WaitPermit::Mined(_)) => Some(permit),
            Some(permit @ WaitPermit::Unmined(_)) if !mined => Some(permit),
            _ if mined => self.waiting.try_acquire().ok().map(WaitPermit::Mined),
            _ => self.waiting_unmined.try_acquire().ok().map(WaitPermit::Unmined),
        }
    }

    /// Lets one more request of a caller wait; `None` when the caller is at its limit.
    fn acquire_caller_permit(&self, caller: &Claimant) -> Option<CallerPermit<'_>> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = callers.entry(caller.clone()).or_default();
        if *count >= MAX_WAITING_PER_CALLER {
            return None;
        }
        *count += 1;
        Some(CallerPermit { payments: self, caller: caller.clone() })
    }

    /// Counts a round that failed to read an arrival, and returns the count so far.
    pub(super) fn failed_rounds(&self, location: ArrivalLocation) -> u32 {
        let mut rounds = self.failed_rounds.lock().unwrap_or_else(PoisonError::into_inner);
        let count = rounds.entry(location).or_default();
        *count += 1;
        *count
    }

    /// Drops the counts of a chain's arrivals up to a block that the watcher has passed.
    pub(super) fn forget_failed_rounds(&self, chain_id: u64, to_block: u64) {
        let mut rounds = self.failed_rounds.lock().unwrap_or_else(PoisonError::into_inner);
        rounds.retain(|location, _| location.chain_id != chain_id || location.block_number > to_block);
    }

    async fn read_transaction(
        &self,
        reader: &Arc<dyn ChainReader>,
        tx: &TxRef,
    ) -> Result<TransactionStatus, ChainError> {
        // The semaphore is never closed.
        let _permit = self.chain_reads.acquire().await;
        reader.transaction(&tx.hash).await
    }

    /// Sleeps until the next poll; returns at once when all waits must end.
    async fn pause(&self, started_at: Instant) {
        let left = self.settings.claim_wait.saturating_sub(started_at.elapsed());
        let mut closing = self.closing.subscribe();
        let _ = tokio::time::timeout(self.settings.claim_poll.min(left), closing.wait_for(|closing| *closing)).await;
    }

    /// Ends all waits, current and future: requests whose payment needs more confirmations get that response
    /// immediately.
    pub(in crate::service) fn end_waits(&self) {
        self.closing.send_replace(true);
    }
}

/// The quote or account whose request waits for a payment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Claimant {
    /// The holder of this quote's nonce.
    Quote(NonceHash),
    /// The account that tops up.
    Account(AccountId),
    /// A call that credits a payment to an account without its key.
    Payment(TxRef),
}

/// A permit to wait, released on drop.
enum WaitPermit<'p> {
    Unmined(#[expect(dead_code, reason = "held, not read")] SemaphorePermit<'p>),
    Mined(#[expect(dead_code, reason = "held, not read")] SemaphorePermit<'p>),
}

/// One of a caller's waiting requests. It no longer counts after it is dropped.
struct CallerPermit<'d> {
    payments: &'d PaymentState,
    caller: Claimant,
}

impl Drop for CallerPermit<'_> {
    fn drop(&mut self) {
        let mut callers = self.payments.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = callers.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                callers.remove(&self.caller);
            }
        }
    }
}

/// Why a pending transaction cannot become the payment, if that is certain.
async fn predicted_fault(
    reader: &Arc<dyn ChainReader>,
    target: PaymentTarget,
    pending: &PendingTransaction,
    judge: impl Fn(&Evidence) -> Result<Payment, PaymentFault>,
) -> Option<PaymentFault> {
    let runs_code = match target.address_to_check(pending) {
        // If the code cannot be read, assume that there is some.
        Some(address) => !matches!(reader.code(address).await, Ok(AccountCode::Empty)),
        None => true,
    };
    let fault = judge(&target.predicted_evidence(pending, runs_code)?).err()?;
    fault.is_certain(target.token == Address::ZERO).then_some(fault)
}

/// The configured chain with that id.
pub(super) fn find_chain(chains: &[Chain], chain_id: u64) -> Result<&Chain, PaymentError> {
    let found = chains.iter().find(|chain| chain.chain_id == chain_id);
    found.ok_or(if chains.is_empty() { PaymentError::NotConfigured } else { PaymentError::UnsupportedChain(chain_id) })
}
