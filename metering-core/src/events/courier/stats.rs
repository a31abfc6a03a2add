//! Counts of a courier's attempts, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::events::delivery::{AttemptOutcome, Delivery, DeliveryState};

/// Counts of the attempts of a [`Courier`](crate::events::Courier), since it was made.
#[derive(Debug, Default)]
pub struct CourierStats {
    delivered: AtomicU64,
    failed: AtomicU64,
    parked: AtomicU64,
}

impl CourierStats {
    /// Attempts that delivered an event.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Attempts that failed, whether or not they are retried.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Deliveries that were parked.
    #[must_use]
    pub fn parked(&self) -> u64 {
        self.parked.load(Ordering::Relaxed)
    }

    /// Counts an attempt, and the delivery if that parked it.
    pub(super) fn count(&self, outcome: &AttemptOutcome, delivery: Option<&Delivery>) {
        let attempts = match outcome {
            AttemptOutcome::Delivered { .. } => &self.delivered,
            AttemptOutcome::Failed { .. } | AttemptOutcome::Gone => &self.failed,
        };
        attempts.fetch_add(1, Ordering::Relaxed);
        if delivery.is_some_and(|delivery| delivery.progress.state == DeliveryState::Parked) {
            self.parked.fetch_add(1, Ordering::Relaxed);
        }
    }
}
