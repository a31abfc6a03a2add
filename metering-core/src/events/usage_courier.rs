//! Sends usage to one of the operator's sinks: stages changed totals, sends them in batches, and records the outcome.
//!
//! Any number of processes may run a courier for the same sink; one at a time claims it. If that process ends, another
//! takes over when the claim has expired, and sends the staged totals again.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::{Clock, Day};
use crate::events::delivery::AttemptOutcome;
use crate::events::usage_sink::{SentUsage, SinkTurn, UsageSink};
use crate::store::{StoreError, UsageSinkStore};

/// How long a turn may take. It reads all totals of [`SentUsage::DAYS`] days at most, and sends one batch.
const LEASE: Duration = Duration::from_secs(10 * 60);
/// How often to check whether the sink is due, and the pause after a failure of the store.
const POLL: Duration = Duration::from_secs(2);
/// How many daily totals are compared at a time. Their changes are staged in one transaction, which charges may have to wait
/// for.
const PAGE: u32 = 250;

/// Sends batches of CloudEvents, over HTTP or otherwise.
#[async_trait]
pub trait UsageSender: Send + Sync + fmt::Debug {
    /// Sends one batch, a JSON array of events. [`AttemptOutcome::of_response`] interprets the response.
    async fn send(&self, batch: Vec<u8>) -> AttemptOutcome;
}

/// The data that a [`UsageCourier`] sends, and how often.
#[derive(Debug, Clone)]
pub struct UsageCourierSettings {
    /// The sink's name. Another name is another sink, which is sent everything again.
    pub sink: String,
    /// The `source` of the events: a URI that never changes.
    pub source: String,
    /// The most events in a batch.
    pub batch: u32,
    /// How often to look for changes.
    pub interval: Duration,
}

/// Sends usage to a sink.
#[derive(Debug)]
pub struct UsageCourier {
    store: Arc<dyn UsageSinkStore>,
    sender: Arc<dyn UsageSender>,
    clock: Arc<dyn Clock>,
    settings: UsageCourierSettings,
    /// The day on which it last compared all days. For the rest of that day, it compares only the most recent days.
    compared_all: Option<Day>,
}

impl UsageCourier {
    /// A courier that does nothing until it [runs](Self::run).
    #[must_use]
    pub fn new(
        store: Arc<dyn UsageSinkStore>,
        sender: Arc<dyn UsageSender>,
        clock: Arc<dyn Clock>,
        settings: UsageCourierSettings,
    ) -> Self {
        Self { store, sender, clock, settings, compared_all: None }
    }

    /// Sends until `stop` ends. A batch that is cut off is sent again, with the same ids, when the claim has expired.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let poll = POLL.min(self.settings.interval);
        let mut store_failed = false;
        loop {
            let worked = tokio::select! {
                biased;
                () = &mut stop => return,
                worked = self.work() => worked,
            };
            match worked {
                Ok(()) => store_failed = false,
                Err(error) if !store_failed => {
                    store_failed = true;
                    let sink = &self.settings.sink;
                    tracing::warn!(%error, sink, "the store failed; usage is not sent to the sink until it recovers");
                }
                Err(_) => {}
            }
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = tokio::time::sleep(poll) => {}
            }
        }
    }

    /// Takes turns while the sink is due: until nothing is left to send, or an attempt failed.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn work(&mut self) -> Result<(), StoreError> {
        let today = self.clock.now().day();
        let is_all = self.compared_all != Some(today);
        // A node whose clock lags books on the day before, just after midnight.
        let from = today.minus_days(if is_all { SentUsage::DAYS - 1 } else { 1 });
        let (mut after, mut is_compared) = (None, false);
        while let Some(sink) = self.store.claim_usage_sink(&self.settings.sink, self.clock.now(), LEASE).await? {
            let mut batch = self.staged().await?;
            while batch.is_empty() && !is_compared {
                let (sink, now) = (&self.settings.sink, self.clock.now());
                let page = self.store.stage_usage(sink, from, after.as_ref(), PAGE, now).await?;
                (after, is_compared) = (page.next.clone(), page.next.is_none());
                if page.items > 0 {
                    batch = self.staged().await?;
                }
            }
            let turn = if batch.is_empty() {
                SinkTurn::Idle(self.settings.interval)
            } else {
                SinkTurn::Sent(self.send(&batch).await)
            };
            let is_delivered = matches!(turn, SinkTurn::Sent(AttemptOutcome::Delivered { .. }));
            self.finish(sink, batch, turn).await?;
            if !is_delivered {
                break;
            }
        }
        if is_compared && is_all {
            self.compared_all = Some(today);
        }
        Ok(())
    }

    async fn staged(&self) -> Result<Vec<SentUsage>, StoreError> {
        self.store.staged_usage(&self.settings.sink, self.settings.batch).await
    }

    async fn send(&self, batch: &[SentUsage]) -> AttemptOutcome {
        let events: Vec<_> = batch.iter().filter_map(|row| row.event(&self.settings.source)).collect();
        match serde_json::to_vec(&events) {
            Ok(body) => self.sender.send(body).await,
            Err(error) => {
                AttemptOutcome::Failed { status: None, error: error.to_string(), retry_after: None, response: None }
            }
        }
    }

    /// Records how a turn ended, and logs when the sink begins to fail and when it recovers.
    async fn finish(&self, before: UsageSink, batch: Vec<SentUsage>, turn: SinkTurn) -> Result<(), StoreError> {
        let (attempt, was_failing) = (before.progress.attempts, before.is_failing());
        let finished = self.store.finish_usage(&before.name, attempt, batch, turn, self.clock.now()).await?;
        let Some(sink) = finished else { return Ok(()) };
        match (was_failing, &sink.progress.last) {
            (false, Some(last)) if sink.is_failing() => {
                let reason = last.error.as_deref().unwrap_or_default();
                tracing::warn!(
                    sink = sink.name,
                    status = last.status,
                    reason,
                    "could not send usage to a sink; retrying"
                );
            }
            (true, _) if !sink.is_failing() => tracing::info!(sink = sink.name, "the sink takes usage again"),
            _ => {}
        }
        Ok(())
    }
}
