//! Commits a batch of charges, refunds and updates of holds: one transaction in at most two round trips for a batch of
//! any size.
//!
//! The first round trip begins the transaction and locks the meter of every account in the batch, ordered by account
//! number. A meter row has what the charge rule needs of an account, and a version of what it needs of the account's
//! keys. Every writer locks the meter before it changes any of that, so what was read stays valid until the commit. The
//! second round trip writes the decisions, with one statement per table over arrays, and the row that records the
//! outcome, and commits. Secrets and keys are cached with their version. Unknown secrets are looked up before the
//! transaction; what has changed since is read again under the locks, which takes one more round trip. The holds that
//! a batch updates, and those that repeated requests opened, are read with the locks, and so are the counts behind
//! volume tiers. Only a commit changes either, under the lock of its account's meter, so a hold is settled once, and a
//! place in a tier is taken once, even if several nodes try.
//!
//! A batch without idempotency keys, updates of holds, volume tiers and limits on tokens skips the first round trip when
//! this node was the last to commit charges of all its accounts: it is decided with the meters as that commit left
//! them, and the second round trip starts with the locks and a check that the meters are still the same. Refusals are
//! never decided so: only meters that are written are checked. Whether a log is open is cached and checked in the same
//! way (`log_batch`).

mod batch;
mod check;
mod columns;
mod facts;
mod hold_reads;
mod log_batch;
mod notices;
mod stored;
mod tokens;
mod volumes;
mod write;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem::take;

use metering_core::charging::{Changes, Decided, Outcome, Posting, decide};
use metering_core::{Decision, StoreError, Timestamp};

use crate::charging::known::Known;
use crate::charging::recent_meters::{Meters, RecentMeters};
use crate::charging::tail::Folds;
use crate::connection::session::{Client, GenericClient};
use crate::connection::wait::{RESPONSE_TIMEOUT, within};
use crate::error::Result;
use crate::store::PostgresStore;
use crate::transactions::outcome::{TransactionFailure, TransactionId};
use crate::transactions::retry::retried;
use batch::{Batch, Item};
use facts::Facts;
use stored::Stored;
use write::{fold, write};

impl PostgresStore {
    /// Decides and records a batch. A bad posting fails alone, without the rest of its batch.
    pub(crate) async fn commit_batch(&self, postings: &[Posting], now: Timestamp) -> Result<Vec<Outcome>, StoreError> {
        match self.commit_together(postings, now).await {
            Err(failure) if failure.is_data_error() && postings.len() > 1 => {
                tracing::error!(?failure, postings = postings.len(), "cannot record a batch; committing it in parts");
                self.commit_separately(postings, now).await
            }
            ended => Ok(ended?),
        }
    }

    /// Commits a batch in halves, and splits those that fail again, in order, until the bad postings are isolated.
    async fn commit_separately(&self, postings: &[Posting], now: Timestamp) -> Result<Vec<Outcome>, StoreError> {
        let mut outcomes = Vec::with_capacity(postings.len());
        let (first, second) = postings.split_at(postings.len() / 2);
        let mut parts = vec![second, first];
        while let Some(part) = parts.pop() {
            let failure = match self.commit_together(part, now).await {
                Ok(of_part) => {
                    outcomes.extend(of_part);
                    continue;
                }
                Err(failure) => failure,
            };
            if failure.is_data_error() && part.len() > 1 {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
                continue;
            }
            // Earlier parts may already be committed, so only an unknown outcome fails the batch as a whole.
            let error = StoreError::from(failure);
            if error.outcome_is_unknown() {
                return Err(error);
            }
            tracing::error!(%error, postings = part.len(), "cannot record these postings; they had no effect");
            outcomes.extend(part.iter().map(|_| Outcome::Failed(error.to_string())));
        }
        Ok(outcomes)
    }

    /// Decides and records postings in one transaction. Retries transient failures, and never counts a posting twice.
    async fn commit_together(&self, postings: &[Posting], now: Timestamp) -> Result<Vec<Outcome>> {
        retried(|| self.try_to_commit(postings, now)).await
    }

    async fn try_to_commit(&self, postings: &[Posting], now: Timestamp) -> Result<Vec<Outcome>> {
        let client = self.pool.get().await?;
        let id = TransactionId::draw()?;
        let ended = match within(RESPONSE_TIMEOUT, Batch::resolve(&client, &self.known, postings)).await {
            Ok(batch) => batch.run(&client, (&self.known, &self.left), id, now).await,
            Err(failure) => Err(TransactionFailure::NotCommitted(failure)),
        };
        self.end(client, id, now, ended).await
    }
}

impl Batch<'_> {
    async fn run(
        &self,
        client: &Client,
        (known, left): (&Known, &RecentMeters),
        id: TransactionId,
        now: Timestamp,
    ) -> Result<Vec<Outcome>, TransactionFailure<Vec<Outcome>>> {
        if self.accounts.is_empty() {
            return Ok(self.decide(&Facts::default(), now)?.0);
        }
        if let Some(ended) = self.run_unread(client, (known, left), id, now).await {
            return ended;
        }
        let has_log = known.has_log();
        match self.run_read(client, (known, left), id, now).await {
            Err(TransactionFailure::NotCommitted(failure)) if !has_log && check::is_stale(&failure) => {
                known.found_log();
                self.run_read(client, (known, left), id, now).await
            }
            ended => ended,
        }
    }

    /// Decides with meters that are read, under their locks.
    async fn run_read(
        &self,
        client: &Client,
        (known, left): (&Known, &RecentMeters),
        id: TransactionId,
        now: Timestamp,
    ) -> Result<Vec<Outcome>, TransactionFailure<Vec<Outcome>>> {
        let mut facts = within(RESPONSE_TIMEOUT, self.lock_and_read(client, known, left, now)).await?;
        let (outcomes, changes) = self.decide(&facts, now)?;
        if changes.is_empty() {
            // All were refused, so there is nothing to write.
            within(RESPONSE_TIMEOUT, async { Ok(client.batch_execute("ROLLBACK").await?) }).await?;
            return Ok(outcomes);
        }
        let folds = self.update(&mut facts, &changes, now)?;
        let id = (id, known.has_log());
        let written = within(RESPONSE_TIMEOUT, write(client, id, None, &facts.meters, &changes, &folds, now)).await;
        if written.is_ok() {
            keep(left, facts.meters, &facts.token_limits, &changes);
            known.learn_holds(&changes.holds);
        }
        TransactionFailure::of_commit(written, outcomes)
    }

    /// Decides with the meters as this node left them, and checks them with the same round trip that writes. `None` when
    /// the batch has to be decided with meters that are read.
    async fn run_unread(
        &self,
        client: &Client,
        (known, left): (&Known, &RecentMeters),
        id: TransactionId,
        now: Timestamp,
    ) -> Option<Result<Vec<Outcome>, TransactionFailure<Vec<Outcome>>>> {
        // The check is only about meters.
        let counts_tokens = |item: &Item<'_>| item.limited_keys(&self.access).next().is_some();
        let is_read = |item: &Item<'_>| item.hold().is_some() || item.counted_route().is_some() || counts_tokens(item);
        if self.requests().next().is_some() || self.items.iter().any(is_read) {
            return None;
        }
        let meters = left.take(self.accounts.keys().copied())?;
        let mut facts = Facts { meters, access: Cow::Borrowed(&self.access), ..Facts::default() };
        if !self.is_known(&facts) {
            left.put(facts.meters);
            return None;
        }
        // Decisions here count requests as in flight. If a decision is discarded, its requests are no longer counted
        // when this returns.
        let (outcomes, changes) = match self.decide(&facts, now) {
            Ok(decided) => decided,
            Err(failure) => return Some(Err(failure.into())),
        };
        if !outcomes.iter().all(is_accepted) {
            left.put(facts.meters);
            return None;
        }
        let seen = facts.meters.clone();
        let folds = match self.update(&mut facts, &changes, now) {
            Ok(folds) => folds,
            Err(failure) => return Some(Err(failure.into())),
        };
        let id = (id, known.has_log());
        let written =
            within(RESPONSE_TIMEOUT, write(client, id, Some(&seen), &facts.meters, &changes, &folds, now)).await;
        match &written {
            Ok(()) => {
                keep(left, facts.meters, &facts.token_limits, &changes);
                known.learn_holds(&changes.holds);
            }
            Err(failure) if check::is_stale(failure) => {
                left.pause();
                return None;
            }
            Err(_) => {}
        }
        Some(TransactionFailure::of_commit(written, outcomes))
    }

    /// Brings the meters to where the changes take them. Returns what must be folded into other tables.
    fn update(&self, facts: &mut Facts<'_>, changes: &Changes<i64, i64>, now: Timestamp) -> Result<Folds> {
        let mut meters = take(&mut facts.meters);
        for (account, state) in &changes.accounts {
            if let Some(meter) = meters.get_mut(account) {
                meter.state = *state;
            }
        }
        for (account, key, of_key) in &changes.keys {
            if let Some(meter) = meters.get_mut(account) {
                meter.keys.insert(*key, *of_key);
            }
        }
        let lines = self.lines.iter().map(|(line, number)| (*number, *line)).chain(facts.lines()).collect();
        let folds = fold(&mut meters, &changes.usage, &lines, now)?;
        facts.meters = meters;
        Ok(folds)
    }

    fn decide(&self, facts: &Facts<'_>, now: Timestamp) -> Result<Decided<i64, i64>> {
        let postings = self.items.iter().map(|item| item.posting.clone());
        decide(&mut Stored { batch: self, facts, now }, postings, now)
    }
}

/// Keeps meters after a commit. A hold adds no entry by which a change of its keys' meters would be noticed, so these are
/// read again, and so is an account whose `access` was drawn anew, and one with a limit on tokens.
fn keep(left: &RecentMeters, mut meters: Meters, token_limits: &BTreeMap<i64, u32>, changes: &Changes<i64, i64>) {
    for opened in changes.holds.iter().filter(|change| change.is_new) {
        if let Some(meter) = meters.get_mut(&opened.account) {
            meter.keys.clear();
        }
    }
    for account in notices::unmarked(changes).into_iter().chain(token_limits.keys().copied()) {
        meters.remove(&account);
        left.forget(account);
    }
    left.put(meters);
}

fn is_accepted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Decided(Decision::Accepted(_)) | Outcome::Refunded(Some(_)))
}
