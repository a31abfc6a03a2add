//! `metering admin backup`: a copy of the store, taken while it is in use, and proven to open.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use metering_core::Verification;
use serde::Serialize;

use super::session::Session;
use super::verify;
use crate::database;
use crate::failure::Failure;
use crate::new_file::NewFile;
use crate::output::{Format, json_line};

/// Copy the store to a file, also while servers charge on it.
#[derive(Debug, Args)]
#[command(after_help = "\
The copy is a state of one moment. It is opened and verified before it gets its name, so a file of that name is always
whole; exit code 3 says that it is whole, and that the books in it do not add up, as they then do not in the store.
To restore, stop the server and put the file in the place of metering.db, with no -wal or -shm file beside it.

Examples:
  metering admin backup /var/backups/metering-2026-11-21.db
  metering admin backup /var/backups/metering.db --force")]
pub(crate) struct BackupArgs {
    /// The file to make.
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
        let copy = NewFile::beside(&self.file, self.force)?;
        database.backup_to(copy.partial()).await?;
        let found = check(copy.partial()).await?;
        copy.finish()?;
        let printed = self.print(out, &found);
        verify::outcome(&found)?;
        printed
    }

    fn print(&self, out: &mut dyn Write, found: &Verification) -> Result<(), Failure> {
        let file = self.file.display().to_string();
        let (accounts, discrepancies) = (found.accounts, found.discrepancies.len());
        if self.format.json {
            json_line(out, &Document { file, accounts, discrepancies })?;
        } else {
            writeln!(out, "{file} is a whole copy. Accounts: {accounts}; discrepancies: {discrepancies}.")?;
        }
        Ok(out.flush()?)
    }
}

/// Opens the copy as the store that it may have to be, and recomputes its books.
async fn check(file: &Path) -> Result<Verification, Failure> {
    let bad = |problem: String| Failure::Failed(format!("the copy is no good: {problem}; no backup was made"));
    let database = database::open_backup(file).await.map_err(|failure| bad(failure.to_string()))?;
    let found = database.store().verify().await.map_err(|error| bad(error.to_string()))?;
    drop(database);
    if database::is_one_file(file) { Ok(found) } else { Err(bad("it did not close".to_owned())) }
}
