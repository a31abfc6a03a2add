//! Makes statements: reads an account's lines from the log's bundles, proves each, and signs the page.
//!
//! A statement has the account's leaves from the log's first leaf in the period up to the first one after it, whatever
//! accounts those two leaves belong to. So statements of successive periods share no line and leave none out, even if
//! clocks differ.

mod scan;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use metering_core::access::Account;
use metering_core::clock::CalendarPeriod;
use metering_core::store::{LogEpoch, LogStore, LoggedAccount};
use metering_core::wire::AccountStatementDocument;
use metering_core::{StoreError, Timestamp};
use metering_log::checkpoint::{Checkpoint, SignedCheckpoint};
use metering_log::keys::PrivateKey;

use crate::bundle::{BUNDLE_LEAVES, Bundle, ChainHead, Leaf, OpenedLeaf};
use crate::lookup::{LogReadError, Lookup};
use crate::reader::LogReader;
use crate::statement::{ProvenLeaf, SignedStatement, gap_of};
use scan::{Found, Gap, Scan};

/// Lines on a page.
const PAGE: usize = 1_000;
/// How many bundles to read at once.
const BUNDLES: u64 = 64;
/// How many lines to prove at once.
const PROVED: usize = 64;
/// How long after a period's end its statement counts as complete without a later leaf, if nothing is waiting to be
/// logged.
const SETTLED: Duration = Duration::from_secs(600);

/// Makes signed account statements for a store.
#[derive(Debug)]
pub struct Statements {
    store: Arc<dyn LogStore>,
    reader: LogReader,
    key: PrivateKey,
    issuer: String,
}

/// Why there is no statement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// No log was begun.
    #[error(
        "This service keeps no log of its postings, so it has no statements; see /credits/ledger and /credits/usage/daily."
    )]
    NoLog,
    /// The log has begun, but no checkpoint is published yet.
    #[error("The log of this service has no checkpoint yet. Try again in a minute.")]
    NoCheckpoint,
    /// The period was over when the log began.
    #[error("The log of this service began on {0}; there are no statements of earlier days.")]
    BeforeLog(Timestamp),
    /// The period has not begun.
    #[error("{0} has not begun yet.")]
    NotBegun(CalendarPeriod),
    /// The lines of the period were deleted from the log.
    #[error("The lines of {0} are no longer in the log. Ask the operator for the archive of the log.")]
    Pruned(CalendarPeriod),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogReadError),
    /// The store's log is invalid.
    #[error("the log cannot be read: {0}")]
    Corrupt(String),
}

impl StatementError {
    fn corrupt(problem: impl Display) -> Self {
        Self::Corrupt(problem.to_string())
    }
}

impl Statements {
    /// Statements from the log of this store, signed by this key as `issuer`, the public URL of the service.
    #[must_use]
    pub fn new(store: Arc<dyn LogStore>, key: PrivateKey, issuer: String) -> Self {
        Self { reader: LogReader::new(Arc::clone(&store)), store, key, issuer }
    }

    /// A page of an account's statement: the lines after the position `after`. Reads all bundles of the period up to the
    /// end of the page, so it may take a second: do not run it on a worker.
    ///
    /// # Errors
    /// When there is no statement of the period, or the store failed.
    pub async fn page(
        &self,
        account: &Account,
        period: CalendarPeriod,
        after: Option<u64>,
        now: Timestamp,
    ) -> Result<AccountStatementDocument, StatementError> {
        if period.start() > now {
            return Err(StatementError::NotBegun(period));
        }
        let epochs = self.store.log_epochs().await?;
        let began = epochs.first().ok_or(StatementError::NoLog)?.began_at;
        let epoch = epochs.into_iter().rev().find(|epoch| epoch.began_at < period.end());
        let epoch = epoch.ok_or(StatementError::BeforeLog(began))?;
        let (_, note) = epoch.checkpoint.as_ref().ok_or(StatementError::NoCheckpoint)?;
        let signed = note.parse::<SignedCheckpoint>().map_err(StatementError::corrupt)?;
        let checkpoint = signed.checkpoint();
        let known = self.store.logged_account(epoch.number, &account.id).await?;
        let found = match &known {
            Some(known) => self.scan(&epoch, known, period, after, checkpoint.size()).await?,
            None => Found { opening: after.is_none().then(ChainHead::default), ..Found::default() },
        };
        let (until, complete) = self.until(&epoch, checkpoint, period, now).await?;
        let mut page = AccountStatementDocument {
            org_id: account.id.to_string(),
            period: period.to_string(),
            from: period.start().max(epoch.began_at),
            gap: gap_of(&epoch, period),
            until,
            complete,
            after,
            opening: found.opening.map(Into::into),
            next: found.next(),
            lines: Vec::new(),
            closing: found.closing().map(Into::into),
            held: account.totals.held.atoms().to_string(),
            checkpoint: note.clone(),
            signature: String::new(),
        };
        let proven = self.prove(&epoch, &found.lines, checkpoint.size()).await?;
        page.lines.extend(proven.iter().map(ProvenLeaf::to_document));
        let signed = SignedStatement::of(&page, self.issuer.clone(), now.unix_seconds(), checkpoint);
        let signed = signed.map_err(|number| StatementError::corrupt(format_args!("line {number}")))?;
        page.signature = signed.sign(&self.key).map_err(StatementError::corrupt)?;
        Ok(page)
    }

    async fn scan(
        &self,
        epoch: &LogEpoch,
        known: &LoggedAccount,
        period: CalendarPeriod,
        after: Option<u64>,
        size: u64,
    ) -> Result<Found, StatementError> {
        let range = self.store.bundles_of(epoch.number, period.start(), period.end()).await?;
        // Read this after the range: then nothing in the range was pruned before.
        let epochs = self.store.log_epochs().await?;
        let minimum = epochs.iter().find(|current| current.number == epoch.number).map_or(0, |current| current.minimum);
        let begins_pruned = after.is_none_or(|after| bundle_of(after) < minimum);
        let may_be_pruned = minimum > 0 && range.start <= minimum && begins_pruned;
        // Leaves after the range can only show the account's state before it.
        let is_newest = range.end >= epoch.size.div_ceil(BUNDLE_LEAVES as u64);
        let swept = bundle_of(epoch.swept_from);
        let first = match after {
            Some(after) => range.start.max(bundle_of(after)),
            // For accounts without later leaves, the state is that of the last sweep.
            None if is_newest => range.start.min(swept).max(minimum),
            None => range.start,
        };
        let at = (first, after.is_some() && first > range.start);
        let mut scan = Scan::new(known.number.unwrap_or(u32::MAX), period, after, (size, PAGE), at);
        let (mut next, end) = (first, if is_newest { u64::MAX } else { range.end });
        while next < end && !scan.is_done() {
            let limit = u32::try_from((end - next).min(BUNDLES)).unwrap_or(u32::MAX);
            let bundles = self.store.log_bundles(epoch.number, next, limit).await?;
            let Some(last) = bundles.last() else { break };
            next = last.index.saturating_add(1);
            for stored in &bundles {
                let bundle = Bundle::unpack(&stored.leaves).map_err(StatementError::corrupt)?;
                let begins_inside = bundle.leaves().first().is_some_and(|leaf| leaf.at() >= period.start());
                if may_be_pruned && stored.index == minimum && begins_inside {
                    return Err(StatementError::Pruned(period));
                }
                scan.take(stored.index, &bundle).map_err(|Gap| StatementError::Pruned(period))?;
            }
        }
        let mut found = scan.finish();
        // Only if everything since the last sweep was read: not if reading started at a later position, or after pruned
        // bundles.
        if found.opening.is_none() && is_newest && first <= swept && after.is_none() {
            found.opening = Some(ChainHead { leaves: known.leaves, funds: known.funds });
        }
        Ok(found)
    }

    /// The time up to which the statement has postings, and whether it is final.
    async fn until(
        &self,
        epoch: &LogEpoch,
        checkpoint: &Checkpoint,
        period: CalendarPeriod,
        now: Timestamp,
    ) -> Result<(Timestamp, bool), StatementError> {
        let end = period.end();
        let mut last = epoch.began_at;
        if let Some(newest) = checkpoint.size().checked_sub(1) {
            for stored in self.store.log_bundles(epoch.number, bundle_of(newest), 1).await? {
                let bundle = Bundle::unpack(&stored.leaves).map_err(StatementError::corrupt)?;
                let leaves = usize::try_from(newest % BUNDLE_LEAVES as u64 + 1).unwrap_or(BUNDLE_LEAVES);
                last = bundle.leaves().iter().take(leaves).map(Leaf::at).fold(last, Timestamp::max);
            }
        }
        if last >= end {
            return Ok((end, true));
        }
        let is_quiet = epoch.ended_at.is_none() && epoch.size == checkpoint.size();
        if is_quiet && now >= end.saturating_add(SETTLED) {
            let waiting = self.store.unlogged(epoch, 1).await?;
            if waiting.postings.is_empty() {
                return Ok((end, true));
            }
        }
        Ok((last, false))
    }

    /// The openings and inclusion proofs of leaves.
    async fn prove(
        &self,
        epoch: &LogEpoch,
        lines: &[(u64, Leaf)],
        size: u64,
    ) -> Result<Vec<ProvenLeaf>, StatementError> {
        let mut proven = Vec::with_capacity(lines.len());
        let mut lookup = Lookup::new(epoch);
        // Each line may need its own tile, so only a few are proved at once.
        for lines in lines.chunks(PROVED) {
            let positions: Vec<u64> = lines.iter().map(|(position, _)| *position).collect();
            let leaves: Vec<&Leaf> = lines.iter().map(|(_, leaf)| leaf).collect();
            let opened = lookup.open(&*self.store, bundle_of(positions[0]), &leaves).await?;
            let paths = self.reader.prove_all(epoch, &positions, size).await?;
            for ((position, opened), path) in positions.into_iter().zip(opened).zip(paths) {
                if let OpenedLeaf::Posted { opening, salt } = opened {
                    proven.push(ProvenLeaf { position, opening, salt, path });
                }
            }
        }
        Ok(proven)
    }
}

/// The bundle that contains a position.
const fn bundle_of(position: u64) -> u64 {
    position / BUNDLE_LEAVES as u64
}
