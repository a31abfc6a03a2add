//! Whether the server can do its work: charges are recorded, the store can be written to, and the chains that plans are
//! paid on can be read.

use std::time::Duration;

use metering_core::{Clock, ClockSkew, Meter, Store};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::chains::Readers;
use crate::clock_watch::ClockWatch;
use crate::progress::ChainProgress;

/// How long the server is not ready after a charge could not be recorded, unless a later one was. Without this, a write
/// that happens to succeed (a small one on a full disk, or one that touches no damaged page) would hide that charges fail.
const FAILURE_COUNTS: Duration = Duration::from_secs(10);
/// How long an answer about the store holds: each finding out is a write to disk, and anybody may ask.
const STORE_FRESH: Duration = Duration::from_secs(1);
/// How long the store may take to answer: whoever asks decides where requests go, and soon.
const STORE_PATIENCE: Duration = Duration::from_secs(5);
/// How long an answer about the chains holds: each finding out is a request that the operator may pay for.
const CHAINS_FRESH: Duration = Duration::from_secs(10);
/// How long a chain may take to answer.
const CHAIN_PATIENCE: Duration = Duration::from_secs(5);

/// What keeps the server from its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hindrance {
    /// The store cannot be written to.
    Store,
    /// This machine's clock is off the database's.
    Clock(ClockSkew),
    /// A chain cannot be read.
    Chain(u64),
    /// A watched chain makes no progress.
    Stalled(u64),
}

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) meter: &'a Meter,
    pub(crate) store: &'a dyn Store,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) clock_watch: &'a ClockWatch,
    pub(crate) readers: &'a Readers,
    pub(crate) progress: &'a ChainProgress,
}

/// What was found out a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    store: Mutex<Option<(Instant, Option<Hindrance>)>>,
    chains: Mutex<Option<(Instant, Option<u64>)>>,
}

impl Readiness {
    /// Finds out, unless it just did.
    pub(crate) async fn hindrance(&self, parts: Parts<'_>) -> Option<Hindrance> {
        // These two cost nothing, so they are always of this moment.
        let charges_fail = || parts.meter.last_failure().is_some_and(|ago| ago < FAILURE_COUNTS);
        if charges_fail() || parts.store.check_identity().await.is_err() {
            return Some(Hindrance::Store);
        }
        let hindrance = self.hindrance_of_store(parts).await;
        if charges_fail() {
            return Some(Hindrance::Store);
        }
        if hindrance.is_some() {
            return hindrance;
        }
        let unreachable = self.unreachable_chain(parts.readers).await.map(Hindrance::Chain);
        unreachable.or_else(|| parts.progress.stalled().map(Hindrance::Stalled))
    }

    async fn hindrance_of_store(&self, Parts { store, clock, clock_watch, .. }: Parts<'_>) -> Option<Hindrance> {
        let mut last = self.store.lock().await;
        if let Some((at, hindrance)) = *last
            && at.elapsed() < STORE_FRESH
        {
            return hindrance;
        }
        let found = tokio::time::timeout(STORE_PATIENCE, async {
            store.check().await?;
            clock_watch.skew(clock, store).await
        });
        let hindrance = match found.await {
            Ok(Ok(skew)) => skew.map(Hindrance::Clock),
            Ok(Err(error)) => {
                tracing::error!(%error, "the store cannot be written to");
                Some(Hindrance::Store)
            }
            Err(_) => {
                tracing::error!("the store does not answer in time");
                Some(Hindrance::Store)
            }
        };
        *last = Some((Instant::now(), hindrance));
        hindrance
    }

    async fn unreachable_chain(&self, readers: &Readers) -> Option<u64> {
        let mut last = self.chains.lock().await;
        if let Some((at, unreachable)) = *last
            && at.elapsed() < CHAINS_FRESH
        {
            return unreachable;
        }
        let mut unreachable = None;
        for (chain_id, reader) in readers {
            match tokio::time::timeout(CHAIN_PATIENCE, reader.heights()).await {
                Ok(Ok(_)) => continue,
                Ok(Err(error)) => tracing::warn!(chain_id, %error, "the chain cannot be read"),
                Err(_) => tracing::warn!(chain_id, "the chain does not answer in time"),
            }
            unreachable = Some(*chain_id);
            break;
        }
        *last = Some((Instant::now(), unreachable));
        unreachable
    }
}
