//! `metering admin log status`.

use std::fmt::Display;
use std::io::Write;

use clap::Args;
use metering_core::store::LogEpoch;
use metering_core::{Clock, FullStore, StoreError, SystemClock, Timestamp};
use serde::Serialize;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::{Column, Table, write_pairs};

/// Postings that are not in the log are counted up to this number.
const COUNTED: u32 = 10_000;

/// Leaves of a bundle.
pub(super) const BUNDLE: u64 = 256;

/// Show the epochs of the log, and the postings that are not in it yet.
#[derive(Debug, Args)]
#[command(after_help = "\
While a server with the key runs, postings are in the log after a second or two, and the published checkpoint has nearly all
entries. If they don't appear, no server is signing the log: look at the servers' own logs. At most 10000 are counted.

Examples:
  metering admin log status
  metering admin log status --json")]
pub(super) struct StatusArgs {
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document {
    epochs: Vec<Epoch>,
    /// `None` without a log.
    #[serde(flatten)]
    waiting: Option<Waiting>,
}

#[derive(Debug, Serialize)]
struct Epoch {
    epoch: u32,
    origin: String,
    began_at: Timestamp,
    ended_at: Option<Timestamp>,
    entries: u64,
    accounts: u32,
    /// The first entry that was not pruned.
    first_entry: u64,
    /// How many entries the published checkpoint has.
    published: Option<u64>,
}

/// Postings that are committed but not in the log yet.
#[derive(Debug, Serialize)]
struct Waiting {
    unlogged: usize,
    /// The age of the oldest one.
    lag_seconds: i64,
}

const COLUMNS: &[Column] = &[
    Column::number("EPOCH"),
    Column::word("ORIGIN"),
    Column::time("BEGAN"),
    Column::time("ENDED").optional(1),
    Column::number("ENTRIES"),
    Column::number("PUBLISHED"),
    Column::number("PRUNED").optional(2),
    Column::number("ACCOUNTS").optional(3),
];

impl StatusArgs {
    pub(super) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let store = session.database().await?.store();
        let found = store.log_epochs().await?;
        let waiting = match found.last() {
            Some(open) => Some(Waiting::find(&*store, open).await?),
            None => None,
        };
        let document = Document { epochs: found.into_iter().map(Epoch::from).collect(), waiting };
        if self.format.json { write_json(out, &document) } else { document.write(out) }
    }
}

impl Waiting {
    async fn find(store: &dyn FullStore, open: &LogEpoch) -> Result<Self, StoreError> {
        let found = store.unlogged(open, COUNTED).await?.postings;
        let now = SystemClock.now();
        let oldest = found.iter().map(|posting| posting.at).min().unwrap_or(now);
        let lag_seconds = now.unix_seconds().saturating_sub(oldest.unix_seconds()).max(0);
        Ok(Self { unlogged: found.len(), lag_seconds })
    }
}

impl From<LogEpoch> for Epoch {
    fn from(epoch: LogEpoch) -> Self {
        Self {
            epoch: epoch.number,
            origin: epoch.origin,
            began_at: epoch.began_at,
            ended_at: epoch.ended_at,
            entries: epoch.size,
            accounts: epoch.accounts,
            first_entry: epoch.minimum.saturating_mul(BUNDLE),
            published: epoch.checkpoint.map(|(size, _)| size),
        }
    }
}

impl Document {
    fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(waiting) = &self.waiting else {
            return Ok(writeln!(out, "This store has no log. `metering admin log init` begins one.")?);
        };
        let mut table = Table::new(COLUMNS);
        for epoch in &self.epochs {
            let ended = epoch.ended_at.map(|at| at.to_string()).unwrap_or_default();
            let published = epoch.published.unwrap_or_default();
            let Epoch { epoch, origin, began_at, entries, first_entry, accounts, .. } = epoch;
            table.row([epoch, origin, began_at, &ended, entries, &published, first_entry, accounts]);
        }
        table.write(out)?;
        writeln!(out)?;
        let more = if waiting.unlogged < COUNTED as usize { "" } else { " or more" };
        let lines: [(&str, &dyn Display); 2] = [
            ("Not in the log yet", &format!("{}{more}", waiting.unlogged)),
            ("Oldest of them", &format!("{} s", waiting.lag_seconds)),
        ];
        write_pairs(out, &lines)
    }
}
