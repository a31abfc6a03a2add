//! Charges saved cards of accounts whose balance is low.
//!
//! Every node does this. A charge is stored before the request to Stripe, and its id is the request's idempotency key.
//! So it is made once, even if this process ends at any point, or another one makes it at the same time.

use std::sync::Arc;
use std::time::Duration;

use metering_core::backend::decision;
use metering_core::payments::{AutoTopUp, TopUpCharge, TopUpChargeId, TopUpStop};
use metering_core::store::TopUpEnd;
use metering_core::{Clock, Service, StoreError, SystemRandomness, Timestamp};
use tokio::time::Instant;

use super::api::{ApiError, PaymentIntent};
use super::cards::Charged;
use super::checkout::{Stripe, TOP_UP};
use crate::http::Shutdown;
use crate::operations::clock_watch::ClockWatch;
use crate::operations::metric::counter;

/// How often to look for low balances.
const INTERVAL: Duration = Duration::from_secs(3);
/// Accounts, or open charges, per query.
const BATCH: u32 = 100;
/// After this long, and then at this interval, an open charge is tried again. Until then, the process that began it waits for
/// Stripe.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// A charge that is open for longer is not sent again, but looked up: Stripe forgets idempotency keys after a day, and may
/// repeat an internal error until then.
const LOOK_UP_AFTER: Duration = Duration::from_secs(60 * 60);
/// A charge that is open for longer and that Stripe does not know was never made. By then, the last request that any process
/// sent for it has ended.
const NEVER_MADE_AFTER: Duration = Duration::from_secs(70 * 60);
/// How far Stripe's clock may be behind.
const CLOCK_SLACK_SECONDS: i64 = 600;

/// Looks for low balances.
#[derive(Debug)]
pub(crate) struct TopUps {
    pub(crate) stripe: Arc<Stripe>,
    pub(crate) service: Arc<Service>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) clock_watch: Arc<ClockWatch>,
}

impl TopUps {
    /// Charges cards until shutdown. Another process, or the next start, finishes charges that were begun then.
    pub(crate) async fn run(self, shutdown: Shutdown) {
        let mut retried: Option<Instant> = None;
        loop {
            let is_retry = retried.is_none_or(|at| at.elapsed() >= RETRY_AFTER);
            let outcome = tokio::select! {
                outcome = self.step(is_retry) => outcome,
                () = shutdown.cancelled() => return,
            };
            if is_retry {
                retried = Some(Instant::now());
            }
            if let Err(error) = outcome {
                tracing::warn!(%error, "could not look for automatic top-ups; trying again");
            }
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    /// Makes the due charges; with `is_retry`, first those whose outcome is unknown. Ends early if Stripe does not
    /// respond.
    async fn step(&self, is_retry: bool) -> Result<(), StoreError> {
        let store = &self.stripe.store;
        let open = if is_retry { store.open_top_ups(BATCH).await? } else { Vec::new() };
        for charge in &open {
            let is_old = charge.started_at.saturating_add(RETRY_AFTER) <= self.clock.now();
            if is_old && !self.settle(charge).await? {
                return Ok(());
            }
        }
        let mut after = None;
        loop {
            let page = store.due_top_ups(after.as_ref(), BATCH).await?;
            if !page.items.is_empty() {
                // The limit is per month, so the clock must be right.
                let Some(now) = self.clock_watch.trusted_now(&*self.clock, &**store).await? else { return Ok(()) };
                for settings in &page.items {
                    if !self.top_up(settings, now).await? {
                        return Ok(());
                    }
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Charges the card of an account if a charge is due. Returns whether Stripe responds, as far as this process
    /// knows.
    async fn top_up(&self, settings: &AutoTopUp, now: Timestamp) -> Result<bool, StoreError> {
        let (store, account) = (&self.stripe.store, &settings.account);
        let Some(rule) = &settings.rule else { return Ok(true) };
        if !self.stripe.sells(rule) {
            tracing::warn!(%account, "automatic top-ups stopped: their plan is no longer sold on the agreed terms");
            return store.stop_top_ups(account, TopUpStop::PlanChanged, now).await.map(|()| true);
        }
        // Nearly always there is, unless the limit of the month is reached: then this takes no write transaction.
        if !decision::has_room(rule, &store.top_up_charges(account, now.day().month().start()).await?) {
            return Ok(true);
        }
        let id = TopUpChargeId::generate(&SystemRandomness);
        match store.begin_top_up(account, id, now).await? {
            Some(charge) => self.settle(&charge).await,
            None => Ok(true),
        }
    }

    /// Makes a charge, or finds out what became of it. Whether Stripe responds.
    async fn settle(&self, charge: &TopUpCharge) -> Result<bool, StoreError> {
        let (store, now) = (&self.stripe.store, self.clock.now());
        let (account, settings) = (store.account(&charge.account).await?, store.auto_top_up(&charge.account).await?);
        let may_send = decision::may_send_top_up(charge, account.as_ref(), settings.as_ref());
        let charged = if may_send && charge.started_at.saturating_add(LOOK_UP_AFTER) > now {
            self.stripe.charge(charge).await
        } else {
            match self.look_up(charge).await {
                Ok(Some(payment)) => Charged::Payment(Box::new(payment)),
                Ok(None) if charge.started_at.saturating_add(NEVER_MADE_AFTER) > now => return Ok(true),
                Ok(None) => {
                    // If this clock is ahead, another process may still send it.
                    if self.clock_watch.trusted_now(&*self.clock, &**store).await?.is_none() {
                        return Ok(true);
                    }
                    tracing::warn!(charge = %charge.id, "an automatic top-up was never made; another one may be");
                    return store.end_top_up(charge.id, TopUpEnd::NeverMade, now).await.map(|_| true);
                }
                Err(error) => Charged::Unknown(error),
            }
        };
        let payment = match charged {
            // Stripe repeats an earlier response with the state at that time.
            Charged::Payment(payment) if payment.status != "succeeded" => self.stripe.api.payment(&payment.id).await,
            Charged::Payment(payment) => Ok(Some(*payment)),
            Charged::Failed(reason) => {
                return self.stripe.not_topped_up(charge.id, reason, now).await.map(|()| true);
            }
            Charged::Unknown(error) => Err(error),
        };
        match payment {
            Ok(Some(payment)) => {
                if let Err(problem) = self.stripe.topped_up(self.service.payments(), &payment, now).await {
                    let problem = problem.message();
                    tracing::error!(charge = %charge.id, problem, "an automatic top-up is not settled; trying again");
                }
                Ok(true)
            }
            Ok(None) => {
                tracing::error!(charge = %charge.id, "Stripe no longer knows an automatic top-up; trying again");
                Ok(true)
            }
            Err(error) => {
                let is_there = !matches!(error, ApiError::Unreachable(_));
                tracing::warn!(charge = %charge.id, %error, "the outcome of an automatic top-up is unknown; trying again");
                Ok(is_there)
            }
        }
    }

    async fn look_up(&self, charge: &TopUpCharge) -> Result<Option<PaymentIntent>, ApiError> {
        let since = charge.started_at.unix_seconds() - CLOCK_SLACK_SECONDS;
        let payments = self.stripe.api.payments_of(&charge.card.customer, since).await?;
        let id = charge.id.to_string();
        let is_it = |payment: &PaymentIntent| {
            payment.metadata.as_ref().is_some_and(|metadata| metadata.get(TOP_UP) == Some(&id))
        };
        Ok(payments.into_iter().find(is_it))
    }
}

impl Stripe {
    /// Ends a charge that was not paid.
    pub(super) async fn not_topped_up(
        &self,
        id: TopUpChargeId,
        reason: TopUpStop,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if self.store.end_top_up(id, TopUpEnd::Failed(reason), now).await? {
            count(reason.as_str());
            tracing::warn!(charge = %id, %reason, "an automatic top-up failed; its account gets no more until it turns them on again");
        }
        Ok(())
    }
}

/// Counts an automatic top-up.
pub(super) fn count(outcome: &'static str) {
    counter!(
        "metering_auto_top_ups_total",
        "Charges of saved cards, by outcome",
        "outcome" => outcome
    )
    .increment(1);
}
