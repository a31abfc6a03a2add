//! The charge path: many callers, one durable transaction at a time.
//!
//! A group committer, or several: as many lanes as the store can commit at one time, each account's charges always in
//! the same one, so that lanes do not wait for each other's accounts. Within a lane, while one commit is on its way to disk,
//! the next batch gathers; when it lands, the batch that has gathered goes. There is no timer, so a lone request waits for nothing but its own commit, and the busier the
//! service is, the more requests share one.
//!
//! A store that is in trouble may take long to say what became of a commit. Charges behind it are then refused, soon and
//! without anything begun for them, rather than left waiting.

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::charge::{Charge, Decision, Receipt, Refund, Refusal};
use crate::clock::Clock;
use crate::credits::Credits;
use crate::store::{Store, StoreError};
use crate::tally::{Outcome, Posting};

/// How long a commit may take until those behind it are not left waiting: a healthy store's takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much a [`Meter`] takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterConfig {
    /// Charges waiting at most, over all lanes; one more is refused at once as [`MeterError::Overloaded`].
    pub queue: NonZeroUsize,
    /// Charges in one commit at most.
    pub batch: NonZeroUsize,
}

impl Default for MeterConfig {
    fn default() -> Self {
        let size = |size| NonZeroUsize::new(size).expect("not zero");
        Self { queue: size(65_536), batch: size(8_192) }
    }
}

/// Charges requests, durably: what it answers is on disk.
///
/// Cheap to share behind an [`Arc`]. See [`Meter::drain`] for the orderly end; a meter that is merely dropped still
/// commits what it accepted, as long as its runtime lives.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::{
///     AccountId, ApiKey, Charge, ClientSource, Clock, Credits, Decision, LedgerKind, MemoryStore, Meter, MeterConfig,
///     NewAccount, NewLedgerEntry, Store, SystemClock, SystemRandomness, UsageLine,
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
/// let charge = Charge {
///     key: key.hash(),
///     price: Credits::BASE_CALL,
///     line: UsageLine {
///         route_template: "/quotes/{number}".into(),
///         http_method: "GET".into(),
///         source: ClientSource::Direct,
///     },
///     request_path: "/quotes/7".into(),
///     request_id: None,
/// };
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
    lanes: Vec<mpsc::Sender<Request>>,
    stats: Arc<MeterStats>,
    draining: watch::Sender<bool>,
    ended: watch::Receiver<Option<MeterEnd>>,
}

/// How a meter ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeterEnd {
    /// It was drained, or dropped.
    Drained,
    /// Its store is [`StoreError::Broken`]; the process must stop.
    StoreBroken,
}

/// Why a charge could not be decided. Nothing was charged, except that nobody can say after a broken store.
#[derive(Debug, Clone, thiserror::Error)]
pub enum MeterError {
    /// Too many charges are waiting.
    #[error("too many requests are waiting to be charged")]
    Overloaded,
    /// The meter was drained.
    #[error("the service is shutting down")]
    Closed,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Arc<StoreError>),
}

#[derive(Debug)]
struct Request {
    posting: Posting,
    reply: oneshot::Sender<Result<Outcome, MeterError>>,
}

impl Meter {
    /// Starts a meter on the current Tokio runtime.
    ///
    /// # Panics
    /// Outside of a Tokio runtime with its clock enabled.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, clock: Arc<dyn Clock>, config: MeterConfig) -> Self {
        let (draining, drain) = watch::channel(false);
        let (end, ended) = watch::channel(None);
        let stats = Arc::<MeterStats>::default();
        let lanes = store.commit_lanes().get();
        let waiting = (config.queue.get() / lanes).max(1);
        let committer = Committer { store, clock, stats: Arc::clone(&stats), most: config.batch.get() };
        let mut committers = JoinSet::new();
        let start_lane = |_| {
            let (queue, inbox) = mpsc::channel(waiting);
            committers.spawn(committer.clone().run(inbox, drain.clone()));
            queue
        };
        let lanes = (0..lanes).map(start_lane).collect();
        let stop = draining.clone();
        tokio::spawn(async move {
            let mut how = MeterEnd::Drained;
            while let Some(ending) = committers.join_next().await {
                // A lane that did not come to its end was ended from outside, with its runtime.
                if ending.is_ok_and(|ending| ending == MeterEnd::StoreBroken) {
                    how = MeterEnd::StoreBroken;
                    stop.send_replace(true);
                }
            }
            end.send_replace(Some(how));
        });
        Self { lanes, stats, draining, ended }
    }

    /// Charges a request. When this returns, the decision is on disk.
    ///
    /// # Errors
    /// When it could not be decided.
    pub async fn charge(&self, charge: Charge) -> Result<Decision, MeterError> {
        let (reply, answer) = oneshot::channel();
        let lane = self.lane(charge.key.as_bytes());
        let request = Request { posting: Posting::Charge(charge), reply };
        lane.try_send(request).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                self.stats.overloaded.fetch_add(1, Ordering::Relaxed);
                MeterError::Overloaded
            }
            mpsc::error::TrySendError::Closed(_) => MeterError::Closed,
        })?;
        match answer.await.map_err(|_| MeterError::Closed)?? {
            Outcome::Decided(decision) => Ok(decision),
            Outcome::Refunded(_) => unreachable!("stores answer charges with decisions"),
        }
    }

    /// Pays a charge back, because what was accepted could not be delivered. Waits rather than refuse when the queue
    /// is full: it is the service that owes. Returns the balance after it, `None` when there was nothing to pay back.
    ///
    /// # Errors
    /// When it could not be recorded.
    pub async fn refund(&self, receipt: Receipt) -> Result<Option<Credits>, MeterError> {
        let Some(refund) = receipt.into_refund() else { return Ok(None) };
        self.pay_back(refund).await
    }

    async fn pay_back(&self, refund: Refund) -> Result<Option<Credits>, MeterError> {
        let (reply, answer) = oneshot::channel();
        // Not that of the account's charges, which go by their key; the store sorts out who comes first.
        let lane = self.lane(refund.account.as_str().as_bytes());
        let request = Request { posting: Posting::Refund(refund), reply };
        lane.send(request).await.map_err(|_| MeterError::Closed)?;
        match answer.await.map_err(|_| MeterError::Closed)?? {
            Outcome::Refunded(balance) => Ok(balance),
            Outcome::Decided(_) => unreachable!("stores answer refunds with balances"),
        }
    }

    /// Takes nothing more, and returns when all that was accepted is on disk.
    pub async fn drain(&self) -> MeterEnd {
        self.draining.send_replace(true);
        self.ended().await
    }

    /// Waits until the meter has ended, by draining or because its store broke.
    pub async fn ended(&self) -> MeterEnd {
        let mut ended = self.ended.clone();
        // An error means that the committing task was ended from outside, with its runtime.
        ended.wait_for(Option::is_some).await.ok().and_then(|end| *end).unwrap_or(MeterEnd::Drained)
    }

    /// What the meter has done so far.
    #[must_use]
    pub fn stats(&self) -> &MeterStats {
        &self.stats
    }

    /// Charges and refunds that wait for their commit.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.lanes.iter().map(|lane| lane.max_capacity() - lane.capacity()).sum()
    }

    /// The lane of what has that name. An account has one live key, so a key's lane is its account's.
    fn lane(&self, name: &[u8]) -> &mpsc::Sender<Request> {
        // The last bytes: hashes are even in all of theirs, ids begin alike.
        let number =
            name.iter().rev().take(8).fold(0_usize, |sum, byte| sum.wrapping_mul(251).wrapping_add(usize::from(*byte)));
        &self.lanes[number % self.lanes.len()]
    }
}

/// The task that commits, one for each lane.
#[derive(Clone)]
struct Committer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    stats: Arc<MeterStats>,
    most: usize,
}

impl Committer {
    async fn run(self, mut inbox: mpsc::Receiver<Request>, mut drain: watch::Receiver<bool>) -> MeterEnd {
        let (mut batch, mut waiting) = (Vec::new(), Vec::new());
        loop {
            // Refunds that waited for a commit that took long go with the next one.
            batch.append(&mut waiting);
            if batch.is_empty() {
                let received = tokio::select! {
                    received = inbox.recv_many(&mut batch, self.most) => received,
                    // What is queued by now is still received; an error means that the meter was dropped, which the
                    // inbox notices by itself.
                    Ok(_) = drain.wait_for(|draining| *draining), if !inbox.is_closed() => {
                        inbox.close();
                        continue;
                    }
                };
                if received == 0 {
                    return MeterEnd::Drained;
                }
            }
            let mut commit = pin!(self.commit(&mut batch));
            let committed = tokio::select! {
                committed = &mut commit => committed,
                () = tokio::time::sleep(PATIENCE) => {
                    tracing::warn!("a commit takes long; charges that come meanwhile are refused");
                    let refusing = refuse(&mut inbox, &mut waiting);
                    tokio::select! {
                        committed = &mut commit => committed,
                        () = refusing => commit.await,
                    }
                }
            };
            if committed.is_err() {
                return MeterEnd::StoreBroken;
            }
        }
    }

    /// Commits a batch and answers it. All waiters are woken by this one task, which is what makes waking them cheap.
    async fn commit(&self, batch: &mut Vec<Request>) -> Result<(), ()> {
        let (postings, replies): (Vec<_>, Vec<_>) =
            batch.drain(..).map(|request| (request.posting, request.reply)).unzip();
        let begun = Instant::now();
        let outcomes = self.store.commit(postings, self.clock.now()).await;
        self.stats.count_commit(replies.len(), begun.elapsed());
        match outcomes {
            Ok(outcomes) => {
                assert_eq!(outcomes.len(), replies.len(), "a store answers each posting once");
                for (outcome, reply) in outcomes.into_iter().zip(replies) {
                    self.stats.count_outcome(&outcome);
                    // The caller may have gone; its charge stands all the same.
                    let _ = reply.send(Ok(outcome));
                }
                Ok(())
            }
            Err(error) => {
                let broken = matches!(error, StoreError::Broken(_));
                let error = Arc::new(error);
                tracing::error!(%error, charges = replies.len(), "a batch of charges could not be committed");
                self.stats.failed.fetch_add(1, Ordering::Relaxed);
                for reply in replies {
                    let _ = reply.send(Err(MeterError::Store(Arc::clone(&error))));
                }
                if broken { Err(()) } else { Ok(()) }
            }
        }
    }
}

/// Answers charges with a refusal until nothing more comes: nothing was begun for them. Refunds are owed, and wait.
async fn refuse(inbox: &mut mpsc::Receiver<Request>, waiting: &mut Vec<Request>) {
    let cause = StoreError::Unavailable("the commit before it takes too long".into());
    let error = MeterError::Store(Arc::new(cause));
    while let Some(request) = inbox.recv().await {
        match request.posting {
            Posting::Charge(_) => drop(request.reply.send(Err(error.clone()))),
            Posting::Refund(_) => waiting.push(request),
        }
    }
}

/// What a meter has done since its start.
#[derive(Debug, Default)]
pub struct MeterStats {
    /// Charges accepted.
    pub accepted: AtomicU64,
    /// Charges refused because the key is not live.
    pub unknown_key: AtomicU64,
    /// Charges refused by a cap.
    pub rate_limited: AtomicU64,
    /// Charges refused for lack of credits.
    pub insufficient: AtomicU64,
    /// Charges refused because the queue was full.
    pub overloaded: AtomicU64,
    /// Refunds recorded.
    pub refunded: AtomicU64,
    /// Commits that succeeded or failed.
    pub commits: AtomicU64,
    /// Commits that failed.
    pub failed: AtomicU64,
    /// Charges and refunds that were handed to a commit.
    pub postings: AtomicU64,
    /// Microseconds spent in commits.
    pub commit_micros: AtomicU64,
}

impl MeterStats {
    fn count_commit(&self, postings: usize, took: Duration) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.postings.fetch_add(u64::try_from(postings).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.commit_micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn count_outcome(&self, outcome: &Outcome) {
        let counter = match outcome {
            Outcome::Decided(Decision::Accepted(_)) => &self.accepted,
            Outcome::Decided(Decision::Refused(Refusal::UnknownKey)) => &self.unknown_key,
            Outcome::Decided(Decision::Refused(Refusal::RateLimited { .. })) => &self.rate_limited,
            Outcome::Decided(Decision::Refused(Refusal::InsufficientCredits { .. })) => &self.insufficient,
            Outcome::Refunded(_) => &self.refunded,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
