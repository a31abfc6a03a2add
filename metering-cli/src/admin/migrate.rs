//! `metering admin migrate`: moves a whole store to another backend and proves that nothing was lost or changed.
//!
//! The old store is locked throughout, and gets the "moved" marker before the new one is opened to servers, so that
//! charges are never made on both.

mod go_back;
mod migration;
mod progress;
mod report;

use std::ffi::OsString;
use std::io::Write;

use clap::Args;

use crate::database::{Destination, Origin};
use crate::failure::Failure;
use crate::output::Format;
use crate::progress::Progress;
use migration::Migration;

/// The variable that can name the target instead of `--to`, to keep a password out of the arguments.
const TO_VARIABLE: &str = "METERING_MIGRATE_TO";

/// Move a whole store from a SQLite file to an empty PostgreSQL database, and check that every record is equal.
#[derive(Debug, Args)]
#[command(after_help = "\
Stop every server and command that uses the file first. The command copies all records, then reads every record of both
stores and compares them. Only if all are equal does it mark the file as moved, so that nothing can open it any more,
and open the database to servers. If it is interrupted, run it again. After a finished move, another run only compares.

Exit code 3: the books of the old store do not add up, or the copy is not equal. Exit code 5: the target is not empty,
or one of the stores was written to since the move.

The log of every posting stays behind; the database begins a new epoch of it, with `metering admin log new-epoch`. The
command prints what to pass, so that the new epoch names the old one's origin and last signed head.

Examples:
  metering admin migrate --from sqlite:/var/lib/metering/metering.db --to postgres://metering@db.example.com/metering
  metering admin migrate --from sqlite:metering-data/metering.db --to postgres://metering@db/metering --dry-run
  metering admin migrate --from sqlite:/var/lib/metering/metering.db --go-back")]
pub(crate) struct MigrateArgs {
    /// The store to move: sqlite:PATH.
    #[arg(long, value_name = "URL")]
    from: OsString,
    /// The target: postgres://USER:PASSWORD@HOST/DATABASE [env: METERING_MIGRATE_TO].
    #[arg(long, value_name = "URL")]
    to: Option<OsString>,
    /// Check both stores and report what would be moved, without moving anything.
    #[arg(long)]
    dry_run: bool,
    /// Remove the "moved" marker so that the file can be used again; it does not have the charges made since the move.
    #[arg(long, conflicts_with_all = ["to", "dry_run"])]
    go_back: bool,
    /// Do not ask for confirmation.
    #[arg(long, requires = "go_back")]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

impl MigrateArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.go_back {
            return go_back::run(&Origin::open(&self.from)?, self.yes, self.format.json, out).await;
        }
        let variable = || std::env::var_os(TO_VARIABLE).filter(|value| !value.is_empty());
        let missing = || Failure::Usage(format!("--to is missing: name the target with --to or in {TO_VARIABLE}"));
        let to = self.to.or_else(variable).ok_or_else(missing)?;
        let to = Destination::of(&to)?;
        let from = Origin::open(&self.from)?;
        let mut migration = Migration { from, to, progress: Progress::new() };
        let report = if self.dry_run { migration.dry_run().await } else { migration.run().await };
        migration.progress.end();
        let report = report?;
        let printed = report.write(out, self.format.json).and_then(|()| Ok(out.flush()?));
        // Even if printing failed: a difference must not end in exit code 0 because of a closed pipe.
        report.outcome()?;
        printed
    }
}
