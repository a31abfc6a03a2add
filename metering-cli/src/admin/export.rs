//! `metering admin export`: writes accounts, ledger, payments and usage for other programs, page by page, so that
//! memory use does not grow with the store.

mod arguments;
mod columns;
mod counted;
mod day_files;
mod days;
mod hashed;
mod keyed;
mod sink;
mod written;

use std::io::{self, IsTerminal, Write};

use metering_core::{Clock, SystemClock};

use self::arguments::ExportKind;
use super::session::Session;
use crate::failure::Failure;
use crate::output::notice;
use crate::progress::{Progress, Unit};

pub(crate) use self::arguments::ExportArgs;

impl ExportArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        if self.with_hashes && !matches!(self.what, ExportKind::Accounts) {
            return Err(Failure::Usage("--with-hashes is for `export accounts` only".to_owned()));
        }
        if !matches!(self.what, ExportKind::Usage) && (self.days.are_given() || self.incremental.is_some()) {
            return Err(Failure::Usage("--from, --to and --incremental are for `export usage` only".to_owned()));
        }
        self.days.check()?;
        let database = session.database().await?;
        let store = database.store();
        if let Some(directory) = &self.incremental {
            return day_files::write(&self, store.as_ref(), directory, SystemClock.now().day(), out).await;
        }
        let total = if self.days.are_given() { None } else { database.count(self.what.section()).await? };
        let is_stdout = self.output.as_os_str() == "-";
        let progress = if is_stdout { Progress::beside_stdout() } else { Progress::new() };
        progress.begin("Writing", Unit::Things("rows"), total);
        if is_stdout {
            let written = self.write(store.as_ref(), out, &progress, self.days).await?;
            progress.end();
            if io::stderr().is_terminal() && !io::stdout().is_terminal() {
                notice(&format!("Wrote {written}."));
            }
            return Ok(());
        }
        let (file, written) = self.write_file(store.as_ref(), &self.output, self.force, &progress, self.days).await?;
        file.finish()?;
        progress.end();
        Ok(writeln!(out, "Wrote {written}, to {}.", self.output.display())?)
    }
}

impl From<csv::Error> for Failure {
    /// Writing CSV fails only when the output fails, because every row has one cell per heading.
    fn from(error: csv::Error) -> Self {
        Self::Output(match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        })
    }
}
