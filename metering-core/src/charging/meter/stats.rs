//! Counters of a meter.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::charging::charge::Decision;
use crate::charging::hold::{Hold, HoldUpdated, SettleReason};
use crate::charging::posting::Outcome;
use crate::charging::refusal::RefusalKind;

/// A meter's counters since it started.
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
    refused: [AtomicU64; RefusalKind::ALL.len()],
    /// Charges refused because the queue was full.
    pub overloaded: AtomicU64,
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
    /// Charges whose request [started](crate::Meter::charge_early) before their commit failed: its response is dropped.
    pub failed_early: AtomicU64,
    /// Charges that were refused after their request started: its response is dropped. Also counted as
    /// [refused](Self::refused).
    pub refused_early: AtomicU64,
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
    /// Charges refused for reasons of this kind. Charges that the full queue refused are
    /// [overloaded](Self::overloaded).
    #[must_use]
    pub fn refused(&self, kind: RefusalKind) -> u64 {
        self.refused[kind as usize].load(Ordering::Relaxed)
    }

    pub(super) fn count_commit(&self, postings: usize, took: Duration) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.postings.fetch_add(u64::try_from(postings).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.commit_micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn count_failure(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether something was written for a posting with this outcome. Refusals need no write.
    pub(super) fn is_written(outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Decided(Decision::Refused(_)) | Outcome::Hold(None) => false,
            Outcome::Hold(Some(updated)) => updated.changed,
            _ => true,
        }
    }

    /// A commit that wrote something succeeded. Only a commit shows that the store works.
    pub(super) fn count_success(&self) {
        *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Counts charges whose callers proceeded before the flush, once that has ended.
    pub(super) fn count_early(&self, charges: usize, are_on_disk: bool) {
        let counter = if are_on_disk { &self.accepted } else { &self.failed_early };
        counter.fetch_add(u64::try_from(charges).unwrap_or(u64::MAX), Ordering::Relaxed);
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
            Outcome::Decided(Decision::Refused(refusal)) => &self.refused[refusal.kind() as usize],
            Outcome::Refunded(_) => &self.refunded,
            Outcome::Hold(Some(updated)) => return self.count_hold(updated),
            Outcome::Settled | Outcome::Hold(None) => return,
            Outcome::Failed(_) => &self.failed_postings,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
