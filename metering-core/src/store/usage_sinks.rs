//! The part of the storage contract for sinks of usage.

use std::time::Duration;

use async_trait::async_trait;

use crate::clock::{Day, Timestamp};
use crate::events::usage_sink::{SentUsage, SinkTurn, UsageSink};
use crate::store::{Cursor, Store, StoreError};

/// Stores the daily totals that were sent to the operator's sinks.
///
/// [`Store::forget_expired`] deletes rows once they have [expired](SentUsage::expires_at).
#[async_trait]
pub trait UsageSinkStore: Store {
    /// All sinks that ever had a turn, by the bytes of their names.
    async fn usage_sinks(&self) -> Result<Vec<UsageSink>, StoreError>;

    /// Claims a sink for a turn ([`UsageSink::claimed`]); a new one is due at once. `None` if it is not due. If several
    /// callers compete, only one gets it.
    async fn claim_usage_sink(
        &self,
        sink: &str,
        now: Timestamp,
        lease: Duration,
    ) -> Result<Option<UsageSink>, StoreError>;

    /// Compares daily totals from the day `from` on, after a cursor, with those sent to the sink, and stages the
    /// differences. Reads about `limit` totals, and all of an account and day. Totals that are staged already are
    /// unchanged. A total that no longer exists, because its key was deleted and another one has its usage, is staged
    /// as zero.
    async fn stage_usage(
        &self,
        sink: &str,
        from: Day,
        after: Option<&Cursor>,
        limit: u32,
        now: Timestamp,
    ) -> Result<StagedPage, StoreError>;

    /// The staged totals of a sink, at most `limit`, by day.
    async fn staged_usage(&self, sink: &str, limit: u32) -> Result<Vec<SentUsage>, StoreError>;

    /// Records how a turn ended ([`UsageSink::finished`]). If the batch was delivered, it is no longer staged, but sent.
    /// `None`, and nothing changes, if the turn is not the current one.
    async fn finish_usage(
        &self,
        sink: &str,
        attempt: u32,
        batch: Vec<SentUsage>,
        turn: SinkTurn,
        now: Timestamp,
    ) -> Result<Option<UsageSink>, StoreError>;
}

/// The totals that [`UsageSinkStore::stage_usage`] staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedPage {
    /// How many totals.
    pub items: usize,
    /// Where to continue; `None` at the end.
    pub next: Option<Cursor>,
}
