//! What the service needs to sell: readers of chains, and the rules of the house.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::address::Address;
use crate::chain::{Chain, ChainReader, Depth, Evidence, Sighting};
use crate::credits::Credits;
use crate::error::Error;
use crate::payment::{Payment, PaymentError, PaymentFault};
use crate::plan::{PaymentKind, Plan};
use crate::random::{Randomness, SystemRandomness};
use crate::transaction::TxRef;

/// Requests that wait for a chain at most; more would hold connections without end.
const MAX_WAITING: usize = 256;
/// How long a transaction that nobody knows is looked for: a node may be a moment behind the one it was sent to.
const UNKNOWN_PATIENCE: Duration = Duration::from_secs(4);

/// The rules of selling by chain. The default is that of the standalone server.
#[derive(Debug, Clone)]
pub struct PaymentSettings {
    /// How long a quote's price is promised.
    pub quote_lifetime: Duration,
    /// How long a claim or top-up waits for a payment to become deep enough.
    pub claim_wait: Duration,
    /// How often it looks meanwhile.
    pub claim_poll: Duration,
    /// Free credits of an account that is made by paying.
    pub signup_bonus: Credits,
    /// Whether a payer who is not known to belong to the account must sign.
    pub require_payer_proof: bool,
    /// How long a rotation challenge can be answered.
    pub challenge_lifetime: Duration,
}

impl Default for PaymentSettings {
    fn default() -> Self {
        Self {
            quote_lifetime: Duration::from_secs(30 * 60),
            claim_wait: Duration::from_secs(45),
            claim_poll: Duration::from_secs(1),
            signup_bonus: Credits::from_whole(2).expect("two credits are in range"),
            require_payer_proof: true,
            challenge_lifetime: Duration::from_secs(10 * 60),
        }
    }
}

/// Readers and rules, as [`Service::with_payments`](crate::Service::with_payments) takes them.
pub(super) struct Desk {
    readers: BTreeMap<u64, Arc<dyn ChainReader>>,
    pub(super) settings: PaymentSettings,
    pub(super) randomness: Arc<dyn Randomness>,
    waiting: Semaphore,
    /// Tokens whose contracts confirmed the decimals that a plan says they have.
    confirmed: Mutex<HashSet<(u64, Address, u8)>>,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("readers", &self.readers).finish_non_exhaustive()
    }
}

impl Default for Desk {
    fn default() -> Self {
        Self::new(BTreeMap::new(), PaymentSettings::default())
    }
}

impl Desk {
    pub(super) fn new(readers: BTreeMap<u64, Arc<dyn ChainReader>>, settings: PaymentSettings) -> Self {
        Self {
            readers,
            settings,
            randomness: Arc::new(SystemRandomness),
            waiting: Semaphore::new(MAX_WAITING),
            confirmed: Mutex::default(),
        }
    }

    pub(super) fn readers(&self) -> &BTreeMap<u64, Arc<dyn ChainReader>> {
        &self.readers
    }

    /// The reader of a chain.
    pub(super) fn reader(&self, chain_id: u64) -> Result<&Arc<dyn ChainReader>, PaymentError> {
        self.readers.get(&chain_id).ok_or(PaymentError::NotConfigured)
    }

    /// Holds a plan's decimals against its token's contract, once: a plan that has them wrong asks for a price that
    /// is wrong by orders of magnitude.
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
                    "the plan is not sold: its token's contract does not have the decimals that the plan says"
                );
                Err(PaymentError::NotConfigured)
            }
        }
    }

    /// Looks at a transaction until `judge` accepts it, refuses it for good, or the wait is over.
    pub(super) async fn await_payment(
        &self,
        tx: TxRef,
        judge: impl Fn(&Evidence) -> Result<Payment, PaymentFault>,
    ) -> Result<Payment, Error> {
        let reader = self.reader(tx.chain_id)?;
        let _turn = self.turn()?;
        let begun = Instant::now();
        let mut seen_before = false;
        loop {
            let waited = begun.elapsed();
            let out_of_patience = waited >= self.settings.claim_wait;
            let refusal = match reader.transaction(&tx.hash).await {
                // Trouble in the middle of a wait is waited for as well; at its beginning the client learns of it.
                Err(error) if out_of_patience || !seen_before => return Err(PaymentError::Chain(error).into()),
                Err(_) => None,
                Ok(Sighting::Unknown) if waited >= UNKNOWN_PATIENCE && !seen_before => {
                    return Err(PaymentError::TxNotFound.into());
                }
                Ok(Sighting::Unknown) => Some(PaymentError::TxNotFound),
                Ok(Sighting::Pending { required }) => {
                    seen_before = true;
                    Some(PaymentError::Unfit(PaymentFault::Unconfirmed(Depth { confirmations: 0, required })))
                }
                Ok(Sighting::Mined(evidence)) => match judge(&evidence) {
                    Ok(payment) => return Ok(payment),
                    Err(fault @ PaymentFault::Unconfirmed(_)) => {
                        seen_before = true;
                        Some(PaymentError::Unfit(fault))
                    }
                    Err(fault) => return Err(PaymentError::Unfit(fault).into()),
                },
            };
            if let Some(refusal) = refusal
                && out_of_patience
            {
                return Err(refusal.into());
            }
            let left = self.settings.claim_wait.saturating_sub(begun.elapsed());
            tokio::time::sleep(self.settings.claim_poll.min(left)).await;
        }
    }

    fn turn(&self) -> Result<SemaphorePermit<'_>, Error> {
        self.waiting.try_acquire().map_err(|_| Error::Overloaded)
    }
}

/// The chain of that id, of those that plans are paid on.
pub(super) fn find_chain(chains: &[Chain], chain_id: u64) -> Result<&Chain, PaymentError> {
    let found = chains.iter().find(|chain| chain.chain_id == chain_id);
    found.ok_or(if chains.is_empty() { PaymentError::NotConfigured } else { PaymentError::UnsupportedChain(chain_id) })
}
