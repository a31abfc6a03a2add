//! `metering admin log prune`.

use std::io::Write;

use clap::Args;
use metering_admin::Administration;
use metering_core::store::LogEpoch;
use metering_core::{Day, FullStore, StoreError, Timestamp};
use serde::Serialize;

use super::status::BUNDLE;
use crate::admin::session::Session;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::{Format, write_json};

/// Delete the log's entries from before a day. Their hashes stay, so the log can still be audited.
#[derive(Debug, Args)]
#[command(after_help = "\
Entries are deleted in groups of 256, once the whole group is older. The newest ones stay, however old. Deleted
entries can no longer appear in statements, receipts from that time can no longer be checked against the log, and
nobody can audit the log from its beginning: keep a backup for as long as you are accountable for these bills. Asks
for confirmation, unless --yes is given.

Examples:
  metering admin log prune --before 2025-01-01 --dry-run
  metering admin log prune --before 2025-01-01 --yes")]
pub(super) struct PruneArgs {
    /// The first UTC day to keep.
    #[arg(long, value_name = "DAY")]
    before: Day,
    /// Show what would be deleted, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

/// The pruned part of an epoch.
#[derive(Debug)]
struct Plan {
    epoch: LogEpoch,
    /// The first bundle that is kept.
    below: u64,
}

#[derive(Debug, Serialize)]
struct Pruned {
    epoch: u32,
    origin: String,
    /// How many entries were deleted, or would be.
    entries: u64,
    /// The first one that is kept.
    first_entry: u64,
}

#[derive(Debug, Serialize)]
struct Document {
    pruned: Vec<Pruned>,
}

impl PruneArgs {
    pub(super) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let store = session.database().await?.store();
        let mut plans = Vec::new();
        for epoch in store.log_epochs().await? {
            plans.extend(Plan::of(&*store, epoch, self.before).await?);
        }
        let mut document = Document { pruned: plans.iter().map(Plan::pruned).collect() };
        let entries: u64 = document.pruned.iter().map(|pruned| pruned.entries).sum();
        if entries > 0 && !self.dry_run {
            if !self.yes {
                confirm(&format!("Delete {entries} entries of the log, from before {}?", self.before)).await?;
            }
            let administration = Administration::new(store);
            for (plan, pruned) in plans.iter().zip(&mut document.pruned) {
                let bundles = administration.prune_log(session.action(), &plan.epoch, plan.below).await?;
                pruned.entries = bundles.saturating_mul(BUNDLE);
            }
        }
        if self.format.json { write_json(out, &document) } else { self.write(out, &document.pruned) }
    }

    fn write(&self, out: &mut dyn Write, pruned: &[Pruned]) -> Result<(), Failure> {
        if pruned.is_empty() {
            return Ok(writeln!(out, "The log has nothing from before {} that can be deleted.", self.before)?);
        }
        let verb = if self.dry_run { "Would delete" } else { "Deleted" };
        for Pruned { origin, entries, first_entry, .. } in pruned {
            writeln!(out, "{verb} {entries} entries of {origin}; the first one that stays is {first_entry}.")?;
        }
        Ok(())
    }
}

impl Plan {
    /// `None` if nothing goes.
    async fn of(store: &dyn FullStore, epoch: LogEpoch, before: Day) -> Result<Option<Self>, StoreError> {
        let ever = Timestamp::from_unix_millis(i64::MAX);
        let older = store.bundles_of(epoch.number, before.start(), ever).await?.start;
        // The same rule as in the store: the bundles that the sequencer reads on a restart are kept, and the last
        // bundle too.
        let needed = if epoch.ended_at.is_none() { epoch.swept_from } else { epoch.size };
        let below = older.min(needed / BUNDLE).min(epoch.size.saturating_sub(1) / BUNDLE);
        Ok((below > epoch.minimum).then_some(Self { epoch, below }))
    }

    fn pruned(&self) -> Pruned {
        let Self { epoch, below } = self;
        Pruned {
            epoch: epoch.number,
            origin: epoch.origin.clone(),
            entries: below.saturating_sub(epoch.minimum).saturating_mul(BUNDLE),
            first_entry: below.saturating_mul(BUNDLE),
        }
    }
}
