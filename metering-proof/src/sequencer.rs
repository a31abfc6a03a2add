//! The sequencer: appends committed postings to the log, in steps of one transaction each.
//!
//! A step is built on the store's current head, and appended only if that is still the head. So after any failure, and
//! however often a step is repeated, no posting is lost or logged twice. Once a step returns, its head may be signed.

mod accounts;
mod fault;
mod open_log;

use std::sync::Arc;
use std::time::Duration;

use metering_core::store::{LogEpoch, LogStep, LogStore, LoggedAccount};
use metering_core::{StoreError, Timestamp};

use crate::bundle::ChainHead;
pub use fault::SequencerError;
use open_log::{OpenLog, Swept};

/// How long a node keeps the lease after its last claim.
const LEASE: Duration = Duration::from_secs(10);
/// How many postings a step has at most.
const STEP_POSTINGS: u32 = 16_384;

/// Appends to the log of a store, while its node has the lease.
#[derive(Debug)]
pub struct Sequencer {
    store: Arc<dyn LogStore>,
    node: String,
    /// The end of the log, if it matched the store after the last step.
    log: Option<OpenLog>,
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stepped {
    /// The node has the lease, and the log is intact.
    Leading {
        /// How many leaves were appended.
        leaves: usize,
        /// Whether there may be more to append: step again immediately.
        is_full: bool,
        /// The epoch with its size and root after the step.
        head: Box<LogEpoch>,
    },
    /// Another node has the lease, or took it during the step. Nothing was appended.
    NotLeading,
    /// The store has no open log.
    NoLog,
}

impl Sequencer {
    /// A sequencer. Node names must be unique, even among earlier processes that may still be running.
    #[must_use]
    pub fn new(store: Arc<dyn LogStore>, node: String) -> Self {
        Self { store, node, log: None }
    }

    /// Claims the log and appends postings that are not in it yet, up to 16,384.
    ///
    /// # Errors
    /// When the store fails, or the log is damaged. It may be unknown whether the step was appended; the next step
    /// finds out.
    pub async fn step(&mut self, now: Timestamp) -> Result<Stepped, SequencerError> {
        // It is restored only once the store has the same end: not after an error, and not if this future is dropped.
        let cached = self.log.take();
        let Some(epoch) = self.store.claim_log(&self.node, LEASE, now).await? else {
            let is_open = self.store.log_epochs().await?.iter().any(|epoch| epoch.ended_at.is_none());
            return Ok(if is_open { Stepped::NotLeading } else { Stepped::NoLog });
        };
        let mut log = match cached.filter(|log| log.is_at(&epoch)) {
            Some(log) => log,
            None => OpenLog::resume(&self.store, &epoch, now).await?,
        };
        let found = self.store.unlogged(&epoch, STEP_POSTINGS).await?;
        log.begin_sweep(now);
        let rows = log.unknown(&found.postings);
        let loaded = if rows.is_empty() { Vec::new() } else { self.store.logged_accounts(epoch.number, &rows).await? };
        let leaves = found.postings.len();
        let growth = log.append(found.postings, &loaded, epoch.accounts, now)?;
        let Swept { accounts, from: swept_from } = log.sweep(leaves);
        let swept = self.swept(&epoch, accounts).await?;

        let has_taken = found.taken != epoch.taken || !found.batches.is_empty();
        let head = Box::new(LogEpoch {
            size: log.size(),
            root: *log.root().as_bytes(),
            accounts: epoch.accounts.saturating_add(u32::try_from(growth.accounts.len()).unwrap_or(u32::MAX)),
            taken: found.taken,
            swept_from: swept_from.unwrap_or(epoch.swept_from),
            ..epoch
        });
        if leaves > 0 || has_taken || !swept.is_empty() {
            let step = LogStep {
                epoch: head.number,
                node: self.node.clone(),
                from: epoch.size,
                size: head.size,
                root: head.root,
                bundles: growth.bundles,
                tiles: growth.tiles,
                accounts: growth.accounts,
                lines: growth.lines,
                taken: found.taken,
                batches: found.batches,
                swept,
                swept_from,
            };
            if !self.store.append_log(step).await? {
                return Ok(Stepped::NotLeading);
            }
        }
        self.log = Some(log);
        // A commit that did not fit into this step is in the next one, and so may be anything after commits without
        // postings.
        let is_full = leaves >= STEP_POSTINGS as usize / 2 || (leaves == 0 && has_taken);
        Ok(Stepped::Leading { leaves, is_full, head })
    }

    /// Gives up the lease, so that another node, or this one after a restart, continues at once.
    ///
    /// # Errors
    /// When the store fails. Then the lease ends by itself, 10 seconds after the last step.
    pub async fn stop(self, now: Timestamp) -> Result<(), StoreError> {
        self.store.claim_log(&self.node, Duration::ZERO, now).await.map(drop)
    }

    /// The states of accounts to write.
    async fn swept(
        &self,
        epoch: &LogEpoch,
        accounts: Vec<(u32, ChainHead)>,
    ) -> Result<Vec<LoggedAccount>, SequencerError> {
        if accounts.is_empty() {
            return Ok(Vec::new());
        }
        let numbers: Vec<u32> = accounts.iter().map(|(number, _)| *number).collect();
        let stored = self.store.numbered_accounts(epoch.number, &numbers).await?;
        if !stored.iter().map(|account| account.number).eq(numbers.iter().copied().map(Some)) {
            let problem = "an account of the log is missing".to_owned();
            return Err(SequencerError::Damaged { epoch: epoch.number, size: epoch.size, problem });
        }
        let state = |(account, (_, head)): (LoggedAccount, (u32, ChainHead))| LoggedAccount {
            leaves: head.leaves,
            funds: head.funds,
            ..account
        };
        Ok(stored.into_iter().zip(accounts).map(state).collect())
    }
}
