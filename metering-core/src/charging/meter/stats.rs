//! Counters of a meter.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::charging::charge::{Decision, Refusal};
use crate::charging::hold::{Hold, HoldUpdated, SettleReason};
use crate::charging::posting::Outcome;

/// What a meter has done since it started.
///
/// ```
/// use std::sync::atomic::Ordering::Relaxed;
///
/// use metering_core::{Charge, Credits, MemoryStore, Service};
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
/// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
/// service.charge(Charge::new(&key, Credits::BASE_CALL, "GET", "/price")).await?;
/// let stats = service.meter().stats();
/// assert_eq!(stats.accepted.load(Relaxed), 1);
/// assert_eq!(stats.failed.load(Relaxed), 0);
/// assert!(service.meter().last_failure().is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct MeterStats {
    /// Charges accepted.
    pub accepted: AtomicU64,
    /// Charges refused because the key is not live.
    pub unknown_key: AtomicU64,
    /// Charges refused by a rate limit.
    pub rate_limited: AtomicU64,
    /// Charges refused because the balance is not above zero.
    pub insufficient: AtomicU64,
    /// Charges refused because the key may not be used for the request.
    pub not_allowed: AtomicU64,
    /// Charges refused because a key has too many requests in flight.
    pub too_many_in_flight: AtomicU64,
    /// Charges refused because the budget of a key does not cover the price.
    pub budget_exhausted: AtomicU64,
    /// Charges refused because a volume tier costs more than the client allows.
    pub max_cost_exceeded: AtomicU64,
    /// Charges refused because the queue was full.
    pub overloaded: AtomicU64,
    /// Retries refused because of their idempotency key.
    pub repeated: AtomicU64,
    /// Holds opened; also counted in `accepted`.
    pub holds: AtomicU64,
    /// Holds settled with a reported cost.
    pub captured: AtomicU64,
    /// Holds settled by their rule, because no cost was reported.
    pub captured_without_report: AtomicU64,
    /// Holds released, because the request was not served.
    pub released: AtomicU64,
    /// Holds settled because their lease had ended.
    pub expired_holds: AtomicU64,
    /// Holds whose request cost more than was held.
    pub exceeded_holds: AtomicU64,
    /// Refunds recorded.
    pub refunded: AtomicU64,
    /// Commits that succeeded or failed.
    pub commits: AtomicU64,
    /// Commits that failed.
    pub failed: AtomicU64,
    /// Charges and refunds that failed individually because the store could not record them.
    pub failed_postings: AtomicU64,
    /// Charges and refunds included in a commit.
    pub postings: AtomicU64,
    /// Microseconds spent in commits.
    pub commit_micros: AtomicU64,
    /// When the last commit failed, unless a commit that wrote something succeeded since.
    failed_at: Mutex<Option<Instant>>,
}

impl MeterStats {
    pub(super) fn count_commit(&self, postings: usize, took: Duration) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.postings.fetch_add(u64::try_from(postings).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.commit_micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn count_failure(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Counts a successful commit. Only one that wrote something shows that the store works; refusals need no write.
    pub(super) fn count_success(&self, outcomes: &[Outcome]) {
        let wrote_nothing = |outcome: &Outcome| match outcome {
            Outcome::Decided(Decision::Refused(_)) | Outcome::Hold(None) => true,
            Outcome::Hold(Some(updated)) => !updated.changed,
            _ => false,
        };
        if !outcomes.iter().all(wrote_nothing) {
            *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    pub(super) fn failed_at(&self) -> Option<Instant> {
        *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_hold(&self, updated: &HoldUpdated) {
        let Some(settled) = updated.hold.settled.filter(|_| updated.changed) else { return };
        let counter = match settled.reason {
            SettleReason::Report => &self.captured,
            SettleReason::NoReport => &self.captured_without_report,
            SettleReason::Release => &self.released,
            SettleReason::Expiry => &self.expired_holds,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if updated.excess.is_positive() {
            let Hold { id, account, line, .. } = &updated.hold;
            let (route, excess) = (&line.route_template, updated.excess);
            tracing::warn!(%route, %account, %id, %excess, "a request cost more than was held");
            self.exceeded_holds.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count_outcome(&self, outcome: &Outcome) {
        if let Outcome::Decided(Decision::Accepted(receipt)) = outcome
            && receipt.hold.is_some()
            && !receipt.repeated
        {
            self.holds.fetch_add(1, Ordering::Relaxed);
        }
        let counter = match outcome {
            Outcome::Decided(Decision::Accepted(_)) => &self.accepted,
            Outcome::Decided(Decision::Refused(Refusal::UnknownKey)) => &self.unknown_key,
            Outcome::Decided(Decision::Refused(Refusal::Key(_))) => &self.not_allowed,
            Outcome::Decided(Decision::Refused(Refusal::TooManyInFlight)) => &self.too_many_in_flight,
            Outcome::Decided(Decision::Refused(Refusal::KeyBudget { .. })) => &self.budget_exhausted,
            Outcome::Decided(Decision::Refused(Refusal::RateLimited { .. })) => &self.rate_limited,
            Outcome::Decided(Decision::Refused(Refusal::InsufficientCredits { .. })) => &self.insufficient,
            Outcome::Decided(Decision::Refused(Refusal::MaxCostExceeded { .. })) => &self.max_cost_exceeded,
            Outcome::Decided(Decision::Refused(Refusal::Repeated(_))) => &self.repeated,
            Outcome::Refunded(_) => &self.refunded,
            Outcome::Hold(Some(updated)) => return self.count_hold(updated),
            Outcome::Settled | Outcome::Hold(None) => return,
            Outcome::Failed(_) => &self.failed_postings,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
