//! Enforces the limits on reverts: issues permits to execute payments, and reports pauses to the operator.
//!
//! Counts are in memory, per process: a restart resets them, and each node allows this many reverts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metering_core::clock::{Clock, Timestamp};
use metering_core::shown_fields;
use tokio::sync::Notify;

use crate::offers::{Exposure, RevertBook, RevertLimits, RevertPause, RevertSubject, RevertTurn};

/// Issues permits to execute payments.
pub(crate) struct RevertGuard {
    book: Mutex<RevertBook>,
    clock: Arc<dyn Clock>,
    /// Wakes those who wait for a permit.
    ended: Notify,
}

/// A payment in flight, until this is dropped.
pub(super) struct Permit {
    guard: Arc<RevertGuard>,
    exposure: Exposure,
}

/// Whether the service executes an authorization at its own cost.
pub(super) enum Turn {
    /// It does now.
    Now,
    /// Others of its payer are in flight.
    Later,
    /// It does not.
    Never(String),
}

shown_fields!(Permit: exposure);

impl Drop for Permit {
    fn drop(&mut self) {
        self.guard.book().end(&self.exposure);
        self.guard.ended.notify_waiters();
    }
}

impl RevertGuard {
    pub(super) fn new(limits: RevertLimits, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { book: Mutex::new(RevertBook::new(limits)), clock, ended: Notify::new() })
    }

    /// Why a payment is not executed now, if it is not.
    pub(crate) fn pause(&self, exposure: &Exposure) -> Option<RevertPause> {
        self.book().pause(exposure, self.clock.now())
    }

    /// How many reverts of the last hour there are on a chain, and until when it is paused, if it is.
    pub(crate) fn on_chain(&self, chain_id: u64) -> (usize, Option<Timestamp>) {
        self.book().on_chain(chain_id, self.clock.now())
    }

    /// A permit for a payment, as soon as others are no longer in flight; `None` if that takes longer than `timeout`.
    pub(super) async fn permit(
        self: &Arc<Self>,
        exposure: Exposure,
        timeout: Duration,
    ) -> Result<Option<Permit>, RevertPause> {
        let deadline = tokio::time::Instant::now() + timeout;
        loop {
            let ended = self.ended.notified();
            let mut ended = std::pin::pin!(ended);
            ended.as_mut().enable();
            let turn = self.book().begin(&exposure, self.clock.now());
            match turn {
                RevertTurn::Now => return Ok(Some(Permit { guard: Arc::clone(self), exposure })),
                RevertTurn::Paused(pause) => return Err(pause),
                RevertTurn::Later => {}
            }
            if tokio::time::timeout_at(deadline, ended).await.is_err() {
                return Ok(None);
            }
        }
    }

    /// A permit for a payment whose transaction may have been sent already.
    pub(super) fn permit_anyway(self: &Arc<Self>, exposure: Exposure) -> Permit {
        self.book().begin_anyway(&exposure);
        Permit { guard: Arc::clone(self), exposure }
    }

    /// Counts a revert.
    pub(super) fn reverted(&self, exposure: &Exposure) {
        let Exposure { chain_id, payer, .. } = *exposure;
        let paused = self.book().record(exposure, self.clock.now());
        for RevertPause { subject, until } in paused {
            match subject {
                RevertSubject::Chain(_) => tracing::error!(
                    chain_id,
                    %until,
                    "self-settlement is paused: too many payments reverted at the gas wallet's cost"
                ),
                RevertSubject::Payer(..) | RevertSubject::Code(..) => tracing::warn!(
                    chain_id,
                    %payer,
                    %until,
                    "a payment reverted at the gas wallet's cost; no more are executed for {subject} for a while"
                ),
            }
        }
    }

    fn book(&self) -> MutexGuard<'_, RevertBook> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
