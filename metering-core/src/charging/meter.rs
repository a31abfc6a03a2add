//! The charge path: group commit puts the charges of many callers into few durable transactions.
//!
//! While one commit is being written to disk, the next batch fills; when the commit is done, that batch is
//! committed. There is no timer, so a lone request waits only for its own commit, and the busier the service is, the
//! more requests share a commit. A store that can run several commits at once has several lanes (see `lanes`); an
//! account's charges always use the same lane.

mod committer;
mod early;
mod end;
mod error;
mod expected;
mod guard;
mod holds;
mod in_commit;
mod keeper;
mod lanes;
mod postings;
mod queue;
mod reply;
mod stats;
mod views;
mod waiting;
mod wakes;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tracing::field::Empty;
use tracing::{Instrument, info_span};

use crate::charging::charge::{Charge, Decision, Receipt, Settlement};
use crate::charging::hold::{HoldAction, HoldId, HoldTerms};
use crate::charging::posting::{Outcome, Posting};
use crate::charging::refusal::Refusal;
use crate::clock::Clock;
use crate::money::credits::Credits;
use crate::random::SystemRandomness;
use crate::store::Store;
use crate::trace;
use committer::Committer;
#[cfg(feature = "tower")]
use keeper::OwedRefund;
use keeper::{Keeper, OpenHolds};
use postings::Postings;
use queue::Queue;
use reply::{Reply, slot};
use views::Views;

pub use early::{EarlyDecision, EarlyReceipt};
pub use end::MeterEnd;
pub use error::MeterError;
pub use expected::ExpectedCharge;
pub use guard::HoldGuard;
pub use holds::HoldDecision;
pub use stats::MeterStats;
pub use wakes::{WakeTogether, wake_together};

/// The capacity of a [`Meter`].
///
/// ```
/// use std::num::NonZeroUsize;
///
/// use metering_core::{MemoryStore, Meter, MeterConfig, SystemClock};
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let queue = NonZeroUsize::new(1_000).ok_or("not zero")?;
/// let config = MeterConfig { queue, ..MeterConfig::default() };
/// let meter = Meter::start(Arc::new(MemoryStore::new()), Arc::new(SystemClock), config);
/// assert_eq!(meter.queued(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterConfig {
    /// The maximum number of waiting charges over all lanes. Further ones fail immediately with
    /// [`MeterError::Overloaded`].
    pub queue: NonZeroUsize,
    /// The maximum number of charges in one commit.
    pub batch: NonZeroUsize,
}

impl Default for MeterConfig {
    fn default() -> Self {
        let size = |size| NonZeroUsize::new(size).expect("not zero");
        Self { queue: size(65_536), batch: size(8_192) }
    }
}

/// How long a drain waits for holds that are being settled, and refunds that wait for a flush.
const DRAIN_WAIT: Duration = Duration::from_secs(5);

/// Charges requests durably: a decision is on disk before the caller gets it, unless the caller requests it
/// [early](Meter::charge_early).
///
/// Cheap to clone, behind an [`Arc`]. Shut it down with [`Meter::drain`]. A meter that is dropped instead still commits
/// accepted charges, as long as its runtime runs.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::money::{LedgerKind, NewLedgerEntry};
/// use metering_core::{
///     AccountId, ApiKey, Charge, Clock, Credits, Decision, MemoryStore, Meter, MeterConfig, NewAccount, Store,
///     SystemClock, SystemRandomness,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// let key = ApiKey::generate(&SystemRandomness);
/// let id = AccountId::generate(&SystemRandomness);
/// let mut account = NewAccount::new(id, "agent".parse()?, key.hash(), SystemClock.now());
/// account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, "2".parse()?, "Free credits")];
/// store.create_account(account).await?;
///
/// let meter = Meter::start(store, Arc::new(SystemClock), MeterConfig::default());
/// let charge = Charge::new(&key, Credits::BASE_CALL, "GET", "/quotes/{number}").with_path("/quotes/7");
/// match meter.charge(charge).await? {
///     Decision::Accepted(receipt) => assert_eq!(receipt.balance.to_string(), "1.9998611111"),
///     Decision::Refused(refusal) => panic!("{refusal:?}"),
/// }
/// meter.drain().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Meter {
    queue: Queue,
    size: usize,
    open: Arc<OpenHolds>,
    stats: Arc<MeterStats>,
    views: Arc<Views>,
    ended: watch::Receiver<Option<MeterEnd>>,
}

impl Meter {
    /// Starts a meter on the current Tokio runtime.
    ///
    /// # Panics
    /// When called outside a Tokio runtime, or in one whose time driver is not enabled.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, clock: Arc<dyn Clock>, config: MeterConfig) -> Self {
        let (end, ended) = watch::channel(None);
        let (stats, size) = (Arc::<MeterStats>::default(), config.queue.get().min(Semaphore::MAX_PERMITS));
        let postings = Postings::new(store.commit_lanes(), size, config.batch, Arc::clone(&clock), Arc::clone(&stats));
        let postings = Arc::new(postings);
        let views = Arc::new(Views::new(Arc::clone(&clock), Arc::clone(&stats)));
        let queue = Queue::new(Arc::clone(&postings), Arc::clone(&store));
        let open = Arc::<OpenHolds>::default();
        let of_keeper = Arc::clone(&store);
        Keeper { store: of_keeper, clock, open: Arc::clone(&open), queue: queue.downgrade() }.start(&ended);
        let committer = Committer { store, postings, views: Arc::clone(&views) };
        tokio::spawn(async move { end.send_replace(Some(committer.run().await)) });
        Self { queue, size, open, stats, views, ended }
    }

    /// Charges a request. When this returns, the decision is on disk.
    ///
    /// ```
    /// use metering_core::{ApiKey, Charge, Credits, Decision, MemoryStore, Meter, MeterConfig, Refusal};
    /// use metering_core::{SystemClock, SystemRandomness};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let meter = Meter::start(Arc::new(MemoryStore::new()), Arc::new(SystemClock), MeterConfig::default());
    /// let unknown = ApiKey::generate(&SystemRandomness);
    /// let decision = meter.charge(Charge::new(&unknown, Credits::BASE_CALL, "GET", "/price")).await?;
    /// assert_eq!(decision, Decision::Refused(Refusal::UnknownKey));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the charge could not be decided.
    pub async fn charge(&self, charge: Charge) -> Result<Decision, MeterError> {
        // A charge may be a clone, and the id of a hold is used once. A payment that backs a hold has it from the start.
        let is_backed = charge.is_backed;
        let id = |given: HoldId| if is_backed { given } else { HoldId::generate(&SystemRandomness) };
        let lease = |lease: Duration| lease.clamp(*HoldTerms::LEASES.start(), *HoldTerms::LEASES.end());
        let hold = charge.hold.map(|terms| HoldTerms { id: id(terms.id), lease: lease(terms.lease), ..terms });
        let span = info_span!(target: trace::TARGET, "charge", metering.decision = Empty);
        let decision = self.decide(charge.with_hold(hold)).instrument(span.clone()).await?;
        span.record("metering.decision", decision.name());
        Ok(decision)
    }

    async fn decide(&self, charge: Charge) -> Result<Decision, MeterError> {
        let posted = self.count_overload(self.queue.try_post(Posting::Charge(charge), slot()));
        match posted?.outcome().await? {
            Outcome::Decided(decision) => Ok(decision),
            other => unreachable!("a store decides a charge, but the outcome was {other:?}"),
        }
    }

    fn count_overload(&self, posted: Result<Reply, MeterError>) -> Result<Reply, MeterError> {
        if let Err(MeterError::Overloaded) = posted {
            self.stats.overloaded.fetch_add(1, Ordering::Relaxed);
        }
        posted
    }

    /// Refunds a charge whose response could not be delivered. If the queue is full, waits instead of failing: a refund
    /// must not get lost. A hold is released. Returns the balance after the refund; `None` when there was nothing to
    /// refund.
    ///
    /// ```
    /// use metering_core::{Charge, Decision, MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// # let meter = service.meter();
    /// let charge = Charge::new(&key, "0.25".parse()?, "GET", "/price");
    /// let Decision::Accepted(receipt) = meter.charge(charge).await? else { return Err("it was refused".into()) };
    /// assert_eq!(meter.refund(receipt).await?, "2".parse().ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When it could not be recorded.
    pub async fn refund(&self, receipt: Receipt) -> Result<Option<Credits>, MeterError> {
        if let Some(release) = receipt.hold_update(HoldAction::Release) {
            return self.update_hold(release).await.map(|updated| Some(updated.balance));
        }
        let Some(refund) = receipt.into_refund() else { return Ok(None) };
        let span = info_span!(target: trace::TARGET, "refund");
        match self.queue.record(Posting::Refund(refund)).instrument(span).await? {
            Outcome::Refunded(balance) => Ok(balance),
            other => unreachable!("a store returns a balance for a refund, but the outcome was {other:?}"),
        }
    }

    /// Records that a response to a request with an idempotency key was passed on: the key is used up.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use metering_core::charging::{DeliveryTerms, Fingerprint, IdempotencyKey, Repetition};
    /// use metering_core::{Charge, Credits, Decision, MemoryStore, Refusal, RequestId, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// # let meter = service.meter();
    /// let charge = Charge::new(&key, Credits::BASE_CALL, "GET", "/price");
    /// let fingerprint = Fingerprint::of("GET", "/price", &charge.line);
    /// let request_id = RequestId::of_idempotency_key(&IdempotencyKey::parse("8e03978e")?);
    /// let delivery = DeliveryTerms { fingerprint, lease: Duration::from_secs(60) };
    /// let charge = charge.with_request_id(request_id).with_delivery(delivery);
    /// let decision = meter.charge(charge.clone()).await?;
    /// let Decision::Accepted(receipt) = decision else { return Err("it was refused".into()) };
    /// // Send the response, and then:
    /// meter.settle(receipt.settlement().ok_or("it has no idempotency key")?).await?;
    /// assert_eq!(meter.charge(charge).await?, Decision::Refused(Refusal::Repeated(Repetition::UsedUp)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When it could not be recorded. A retry may then be forwarded again, uncharged.
    pub async fn settle(&self, settlement: Settlement) -> Result<(), MeterError> {
        let span = info_span!(target: trace::TARGET, "delivered");
        self.queue.record(Posting::Settle(settlement)).instrument(span).await.map(drop)
    }

    /// Stops accepting requests, and returns when everything accepted is on disk. Holds that are being settled, and refunds that wait for
    /// a flush, get five seconds first; those of guards that still exist then are settled when their lease ends.
    pub async fn drain(&self) -> MeterEnd {
        let _ = tokio::time::timeout(DRAIN_WAIT, self.open.settled()).await;
        self.queue.close();
        self.ended().await
    }

    /// Waits until the meter has ended, because it was drained or its store broke.
    pub async fn ended(&self) -> MeterEnd {
        let mut ended = self.ended.clone();
        // An error means that the committer task was stopped with its runtime.
        ended.wait_for(Option::is_some).await.ok().and_then(|end| *end).unwrap_or(MeterEnd::Drained)
    }

    /// How long ago the last commit failed; `None` if none failed, or if one succeeded after it.
    #[must_use]
    pub fn last_failure(&self) -> Option<Duration> {
        self.stats.failed_at().map(|at| at.elapsed())
    }

    /// The meter's counters.
    #[must_use]
    pub fn stats(&self) -> &MeterStats {
        &self.stats
    }

    /// Counts a request that was refused without a commit.
    pub(crate) fn count_refusal(&self, refusal: Refusal) {
        self.stats.count_outcome(&Outcome::Decided(Decision::Refused(refusal)));
    }

    /// Charges and refunds waiting for their commit.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.size.saturating_sub(self.queue.available())
    }

    /// Keeps a drain waiting for a refund that cannot be posted yet.
    #[cfg(feature = "tower")]
    pub(crate) fn owe_refund(&self) -> OwedRefund {
        self.open.owe_refund()
    }

    /// The holds of the requests that this process serves.
    #[must_use]
    pub fn open_holds(&self) -> usize {
        self.open.len()
    }
}
