//! Follows the price versions that operators apply.
//!
//! Every node of a store reads the schedule well before a version takes effect, and switches by its own clock, so all
//! switch at the same time. A request keeps the prices that it began with.

use std::sync::Arc;
use std::time::Duration;

use metering_admin::SWITCH_LEAD;
use metering_core::prices::{PriceHistory, PriceNumber};

use super::reload::{Parts, Reloader};
use crate::http::Shutdown;

/// How often the schedule is read. A version is scheduled at least [`SWITCH_LEAD`] ahead, so that one failed read does
/// not make a node late.
const INTERVAL: Duration = Duration::from_secs(5);
const _: () = assert!(INTERVAL.as_secs() * 3 <= SWITCH_LEAD.as_secs());

/// A node's last state of the schedule, to log each problem once.
#[derive(Debug, Default)]
struct Known {
    /// The last scheduled version that was checked.
    checked: Option<PriceNumber>,
    problem: Option<String>,
}

/// Follows the schedule until shutdown.
pub(super) async fn follow(reloader: Arc<Reloader>, shutdown: Shutdown) {
    let mut known = Known::default();
    loop {
        let wait = match reloader.parts() {
            Some(parts) => tokio::select! {
                wait = known.step(&reloader, parts) => wait,
                // It may wait for a reload that a file blocks.
                () = shutdown.cancelled() => return,
            },
            None => INTERVAL,
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

impl Known {
    /// Switches if a version has taken effect, and returns how long to wait.
    async fn step(&mut self, reloader: &Arc<Reloader>, parts: &Parts) -> Duration {
        let now = parts.clock.now();
        let history = match parts.store.price_versions(now).await {
            Ok(history) => history,
            Err(error) => {
                tracing::warn!(%error, "could not read the schedule of price versions; trying again");
                return INTERVAL;
            }
        };
        self.switch(reloader, parts, &history).await;
        self.look_ahead(reloader, parts, &history).await;
        let now = parts.clock.now();
        let until = |since: i64| Duration::from_millis(u64::try_from(since - now.unix_millis()).unwrap_or(0));
        history.next_after(now).map_or(INTERVAL, |next| until(next.since.unix_millis()).min(INTERVAL))
    }

    async fn switch(&mut self, reloader: &Arc<Reloader>, parts: &Parts, history: &PriceHistory) {
        let front = parts.front.load();
        let app = front.app();
        let applied = history.in_force(parts.clock.now()).filter(|current| current.applied_by.is_some());
        let Some(current) = applied.filter(|current| app.service.price_version() != Some(current.number)) else {
            app.readiness.prices_are_outdated(false);
            self.problem = None;
            return;
        };
        match reloader.switch(current.number).await {
            Ok(()) => {
                app.readiness.prices_are_outdated(false);
                self.problem = None;
                tracing::info!(version = %current.number, "a price version has taken effect");
            }
            Err(error) => {
                app.readiness.prices_are_outdated(true);
                if self.problem.as_ref() != Some(&error) {
                    tracing::error!(version = %current.number, %error, "a price version is in force that this server cannot serve; it continues with the previous one, and is not ready");
                    self.problem = Some(error);
                }
            }
        }
    }

    /// Reports a scheduled version that this server cannot serve, while it can still be cancelled.
    async fn look_ahead(&mut self, reloader: &Arc<Reloader>, parts: &Parts, history: &PriceHistory) {
        let next = history.next_after(parts.clock.now()).map(|next| next.number);
        let Some(number) = next.filter(|_| next != self.checked) else { return };
        if let Err(error) = reloader.check(number).await {
            tracing::error!(version = %number, %error, "a price version is scheduled that this server cannot serve");
        }
        self.checked = Some(number);
    }
}
