//! Readiness: charges are recorded, the store is writable, the clock agrees with the database's, and the chains that
//! plans are paid on can be read and make progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metering_core::clock::ClockSkew;
use metering_core::wire::ErrorCode;
use metering_core::{Meter, Store};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::chains::Readers;
use crate::chains::progress::ChainProgress;
use crate::operations::clock_watch::ClockWatch;

/// How long the server stays not ready after a charge could not be recorded, unless a later one succeeds. Otherwise a
/// write that happens to succeed (a small one on a full disk, or one that touches no damaged page) would hide failing
/// charges.
const CHARGE_FAILURE_WINDOW: Duration = Duration::from_secs(10);
/// How long a store check is cached: each check writes to disk, and the endpoint is public.
const STORE_CHECK_TTL: Duration = Duration::from_secs(1);
/// Timeout of a store check. Load balancers call this and need a quick response.
const STORE_CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a chain check is cached: each check is an RPC request that the operator may pay for.
const CHAIN_CHECK_TTL: Duration = Duration::from_secs(10);
/// Timeout of a chain check.
const CHAIN_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the server is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotReady {
    /// The store cannot be written to.
    Store,
    /// This machine's clock differs from the database's.
    Clock(ClockSkew),
    /// A chain cannot be read.
    Chain(u64),
    /// A watched chain makes no progress.
    Stalled(u64),
    /// A price version is in force that this server cannot serve.
    Prices,
}

impl NotReady {
    /// Its code in responses and metrics.
    pub(crate) fn code(self) -> ErrorCode {
        match self {
            Self::Store => ErrorCode::StorageUnavailable,
            Self::Clock(_) => ErrorCode::ClockSkew,
            Self::Chain(_) => ErrorCode::ChainUnreachable,
            Self::Stalled(_) => ErrorCode::ChainStalled,
            Self::Prices => ErrorCode::CatalogueUnusable,
        }
    }
}

/// The parts to check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) meter: &'a Meter,
    pub(crate) store: &'a dyn Store,
    pub(crate) clock_watch: &'a ClockWatch,
    pub(crate) readers: &'a Readers,
    pub(crate) progress: &'a ChainProgress,
}

/// Cached results of the last checks.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    store: Mutex<Option<(Instant, Option<NotReady>)>>,
    chains: Mutex<Option<(Instant, Option<u64>)>>,
    outdated_prices: AtomicBool,
}

impl Readiness {
    /// Why the server is not ready, if it is not. Uses cached results while they are fresh.
    pub(crate) async fn not_ready(&self, parts: Parts<'_>) -> Option<NotReady> {
        if let Some(reason) = self.not_ready_to_charge(parts).await {
            return Some(reason);
        }
        let unreachable = self.unreachable_chain(parts.readers).await.map(NotReady::Chain);
        unreachable.or_else(|| parts.progress.stalled().map(NotReady::Stalled))
    }

    /// The same without the chains, which charges do not need: a provider's outage concerns all nodes alike, and a
    /// balancer that took all of them out would make it worse.
    pub(crate) async fn not_ready_to_charge(&self, parts: Parts<'_>) -> Option<NotReady> {
        // These two are free, so they are never cached.
        let charges_fail = || parts.meter.last_failure().is_some_and(|ago| ago < CHARGE_FAILURE_WINDOW);
        if charges_fail() || parts.store.check_identity().await.is_err() {
            return Some(NotReady::Store);
        }
        let reason = self.store_not_ready(parts).await;
        if charges_fail() {
            return Some(NotReady::Store);
        }
        if reason.is_some() {
            return reason;
        }
        self.outdated_prices.load(Ordering::Relaxed).then_some(NotReady::Prices)
    }

    /// Whether a price version is in force that this server cannot serve.
    pub(crate) fn prices_are_outdated(&self, outdated: bool) {
        self.outdated_prices.store(outdated, Ordering::Relaxed);
    }

    /// The same for the store and the clock alone. Takes at most [`STORE_CHECK_TIMEOUT`].
    pub(crate) async fn store_not_ready(&self, Parts { store, clock_watch, .. }: Parts<'_>) -> Option<NotReady> {
        let mut last = self.store.lock().await;
        if let Some((at, reason)) = *last
            && at.elapsed() < STORE_CHECK_TTL
        {
            return reason;
        }
        let found = tokio::time::timeout(STORE_CHECK_TIMEOUT, async {
            store.check().await?;
            clock_watch.skew(store).await
        });
        let reason = match found.await {
            Ok(Ok(skew)) => skew.map(NotReady::Clock),
            Ok(Err(error)) => {
                tracing::error!(%error, "the store cannot be written to");
                Some(NotReady::Store)
            }
            Err(_) => {
                tracing::error!("the store check timed out");
                Some(NotReady::Store)
            }
        };
        *last = Some((Instant::now(), reason));
        reason
    }

    async fn unreachable_chain(&self, readers: &Readers) -> Option<u64> {
        let mut last = self.chains.lock().await;
        if let Some((at, unreachable)) = *last
            && at.elapsed() < CHAIN_CHECK_TTL
        {
            return unreachable;
        }
        let mut unreachable = None;
        for (chain_id, reader) in readers {
            match tokio::time::timeout(CHAIN_CHECK_TIMEOUT, reader.heights()).await {
                Ok(Ok(_)) => continue,
                Ok(Err(error)) => tracing::warn!(chain_id, %error, "the chain cannot be read"),
                Err(_) => tracing::warn!(chain_id, "the chain did not respond in time"),
            }
            unreachable = Some(*chain_id);
            break;
        }
        *last = Some((Instant::now(), unreachable));
        unreachable
    }
}
