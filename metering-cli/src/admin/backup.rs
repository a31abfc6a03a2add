//! `metering admin backup`: copies the store while it is in use, and checks that the copy opens.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use metering_core::store::Verification;
use serde::Serialize;

use super::session::Session;
use super::verify;
use crate::database;
use crate::failure::Failure;
use crate::new_file::NewFile;
use crate::output::{Format, write_json};
use crate::progress::{Progress, Unit, size};

/// Copy the store to a file, even while servers use it.
#[derive(Debug, Args)]
#[command(after_help = "\
The copy is a snapshot of one moment. It gets its final name only after every page has been checked, the books
recomputed and the copy opened. So the file is always complete, and a damaged store never replaces a good backup.
Exit code 3: the copy is complete, but its books do not add up, and neither do the store's.
To restore, stop the server and replace metering.db with the file. Remove any -wal or -shm file next to it.

Examples:
  metering admin backup /var/backups/metering-2026-11-21.db
  metering admin backup /var/backups/metering.db --force")]
pub(crate) struct BackupArgs {
    /// The file to create.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document {
    file: String,
    accounts: u64,
    discrepancies: usize,
}

impl BackupArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let database = session.database().await?;
        database.check_backup_target(&self.file)?;
        let copy = NewFile::absent_next_to(&self.file, self.force)?;
        let progress = Progress::new();
        progress.begin("Copying", Unit::Bytes, Some(0));
        let found = database.backup_to(copy.partial(), Arc::new(progress.clone())).await;
        progress.end();
        let found = found?;
        check(copy.partial()).await?;
        let bytes = std::fs::metadata(copy.partial()).map_or(0, |metadata| metadata.len());
        copy.finish()?;
        let printed = self.print(out, &found, bytes);
        verify::outcome(found.discrepancies.len())?;
        printed
    }

    fn print(&self, out: &mut dyn Write, found: &Verification, bytes: u64) -> Result<(), Failure> {
        let file = self.file.display().to_string();
        let (accounts, discrepancies) = (found.accounts, found.discrepancies.len());
        if self.format.json {
            write_json(out, &Document { file, accounts, discrepancies })?;
        } else {
            let size = size(bytes);
            writeln!(out, "{file} is a complete copy, {size}. Accounts: {accounts}; discrepancies: {discrepancies}.")?;
        }
        Ok(out.flush()?)
    }
}

/// Opens the verified copy as a store, as a restore would.
async fn check(file: &Path) -> Result<(), Failure> {
    let bad = |problem: String| Failure::Failed(format!("the copy is unusable: {problem}; no backup was made"));
    drop(database::open_backup(file).await.map_err(|failure| bad(failure.to_string()))?);
    if database::is_one_file(file) { Ok(()) } else { Err(bad("it did not close cleanly".to_owned())) }
}
