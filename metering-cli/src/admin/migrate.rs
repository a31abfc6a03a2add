//! `metering admin migrate`: a whole store, moved to another backend, and the proof that nothing was lost or changed.
//!
//! The old store is locked from the beginning to the end, and marked as moved before the new one is opened to anybody: at
//! no moment can both be charged on.

mod go_back;
mod moving;
mod progress;
mod report;

use std::ffi::OsString;
use std::io::Write;

use clap::Args;

use crate::database::{Destination, Origin};
use crate::failure::Failure;
use crate::output::Format;
use moving::Moving;
use progress::Progress;

/// The variable that names the target, for a password that is not to be an argument.
const TO_VARIABLE: &str = "METERING_MIGRATE_TO";

/// Move a whole store from a SQLite file to an empty PostgreSQL database, and prove that all is equal.
#[derive(Debug, Args)]
#[command(after_help = "\
Stop every server and command that uses the file first. All is copied, then every record of both stores is read and
compared, and only if all are equal is the file marked as moved, so that nothing opens it any more, and the database
opened to servers. Interrupted at any point, run it again. Run after it succeeded, it compares again.

Exit code 3 says that the books of the old store do not add up, or that the copy is not equal; 5 that the target is not
empty, or was written to since the move.

Examples:
  metering admin migrate --from sqlite:/var/lib/metering/metering.db --to postgres://metering@db.example.com/metering
  metering admin migrate --from sqlite:metering-data/metering.db --to postgres://metering@db/metering --dry-run
  metering admin migrate --from sqlite:/var/lib/metering/metering.db --go-back")]
pub(crate) struct MigrateArgs {
    /// The store to move: sqlite:PATH.
    #[arg(long, value_name = "URL")]
    from: OsString,
    /// Where to: postgres://USER:PASSWORD@HOST/DATABASE [env: METERING_MIGRATE_TO].
    #[arg(long, value_name = "URL")]
    to: Option<OsString>,
    /// Look at both ends and say what would be moved, and move nothing.
    #[arg(long)]
    dry_run: bool,
    /// Take the mark of a store that was moved away, to use the file again; what was charged since is not in it.
    #[arg(long, conflicts_with_all = ["to", "dry_run"])]
    go_back: bool,
    /// Go back without asking.
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
        let missing = || Failure::Usage(format!("--to is missing: name the target with it, or in {TO_VARIABLE}"));
        let to = self.to.or_else(variable).ok_or_else(missing)?;
        let to = Destination::of(&to)?;
        let mut moving = Moving { from: Origin::open(&self.from)?, to, progress: Progress::new() };
        let report = if self.dry_run { moving.look().await } else { moving.run().await };
        moving.progress.end();
        let report = report?;
        let printed = report.write(out, self.format.json).and_then(|()| Ok(out.flush()?));
        // Whether or not anybody read it: a difference must not end in exit code 0 because of a closed pipe.
        report.outcome()?;
        printed
    }
}
