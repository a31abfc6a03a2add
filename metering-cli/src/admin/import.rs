//! `metering admin import`: moves accounts of another service into this store, and proves that every balance is equal.
//!
//! The file is read twice: once to import, in batches that are one transaction each, and once to compare what the store
//! has. The proof relies on nothing that the import remembered, so a run that was interrupted is simply run again.

mod agenthub;
mod fields;
mod quotes;
mod report;
mod source;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use metering_admin::Administration;
use metering_core::imports::{AccountImported, ImportedEntry};
use metering_core::money::LedgerEntry;
use metering_core::{Clock, FullStore, StoreError, SystemClock};
use metering_import::PlannedAccount;

use self::report::Report;
use self::source::{FileFormat, Item, Source};
use super::session::Session;
use crate::failure::Failure;
use crate::output::Format;
use crate::progress::{Progress, Unit, numbered};

/// How many accounts are written in one transaction.
const BATCH: usize = 200;
/// The parts of an import: importing, comparing, verifying.
const PARTS: usize = 3;

/// Import accounts of another service, with their key hashes and balances.
#[derive(Debug, Args)]
#[command(after_help = "\
accounts  CSV with a line of headings, JSON with one object per line, or a JSON array; what `metering admin export
          accounts --with-hashes` writes.
agenthub  The SQLite database of a service with this wire protocol. Stop that service first.

Keys work unchanged, and every balance is equal to the atom; both are compared after the import. What is odd about the
file is listed. Accounts that were imported before are left as they are: after an interruption, run the same command
again. Also creates the store if there is none yet. docs/moving-in.md describes the formats and every message.
Exit code 3: some accounts were not imported, or differ from the file.

Examples:
  metering admin import --from agenthub.db --format agenthub --dry-run
  metering admin import --from accounts.csv --format accounts --json > report.json")]
pub(crate) struct ImportArgs {
    /// The file to import.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// What the file is.
    #[arg(long, value_name = "FORMAT")]
    format: FileFormat,
    /// Write nothing; show what an import would do.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: Format,
}

impl ImportArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let progress = Progress::new();
        let report = self.report(session, &progress).await?;
        progress.end();
        report.finish(&self.output, out)
    }

    async fn report(&self, session: &Session, progress: &Progress) -> Result<Report, Failure> {
        let now = SystemClock.now();
        // Before the store is opened, so that a file that cannot be read leaves no empty store behind.
        let mut source = Source::open(&self.from, self.format, now)?;
        let accounts = Unit::Things("accounts");
        let total = Source::count(&self.from, self.format, now);
        let mut report = Report::new(self.dry_run);
        let store: Arc<dyn FullStore> = if self.dry_run && !session.store_exists()? {
            // As a new store would be: a dry run must not create one.
            crate::database::in_memory()?
        } else {
            session.store_or_new().await?
        };
        let administration = Administration::new(store.clone());
        let mut batch = Vec::with_capacity(BATCH);
        let first = if self.dry_run { "Reading".to_owned() } else { numbered("Importing", 1, PARTS) };
        progress.begin(&first, accounts, total);
        loop {
            let item = source.next()?;
            let ended = item.is_none();
            if let Some(item) = item {
                progress.add(1);
                report.found(&item);
                if let Item::Account(planned) = item {
                    batch.push(*planned);
                }
            }
            if batch.len() >= BATCH || (ended && !batch.is_empty()) {
                let batch = std::mem::take(&mut batch);
                self.import(&administration, session, batch, &mut report).await?;
            }
            if ended {
                break;
            }
        }
        let target = Some(store.as_ref()).filter(|_| !self.dry_run);
        quotes::open(target, source.quotes()?, &mut report).await?;
        report.oddities(source.oddities()?);
        if !self.dry_run {
            progress.begin(&numbered("Comparing", 2, PARTS), accounts, total);
            prove(store.as_ref(), Source::open(&self.from, self.format, now)?, &mut report, progress).await?;
            progress.begin(&numbered("Verifying the books", 3, PARTS), Unit::Steps, None);
            report.verified(&store.verify().await?);
        }
        Ok(report)
    }

    async fn import(
        &self,
        administration: &Administration,
        session: &Session,
        batch: Vec<PlannedAccount>,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let accounts = batch.iter().map(|planned| planned.account.clone()).collect();
        let outcomes: Vec<AccountImported> = if self.dry_run {
            administration.check_import(accounts).await?
        } else {
            administration.import_accounts(session.action(), accounts).await?
        };
        for (planned, outcome) in batch.iter().zip(&outcomes) {
            report.imported(planned, outcome);
        }
        Ok(())
    }
}

/// Compares every account of the file with the store.
async fn prove(
    store: &dyn FullStore,
    mut source: Source,
    report: &mut Report,
    progress: &Progress,
) -> Result<(), Failure> {
    while let Some(item) = source.next()? {
        progress.add(1);
        let Item::Account(planned) = item else { continue };
        let found = store.account(&planned.account.id).await?;
        let equal = found.as_ref().is_some_and(|account| planned.is_proved_by(&account.totals));
        let changed = !equal && found.is_some() && began_as_planned(store, &planned).await?;
        report.compared(&planned, found.as_ref(), changed);
    }
    Ok(())
}

/// Whether an account whose balance differs began with the entries of the file, and changed after that.
async fn began_as_planned(store: &dyn FullStore, planned: &PlannedAccount) -> Result<bool, StoreError> {
    let entries = &planned.account.entries;
    let limit = u32::try_from(entries.len().max(1)).unwrap_or(u32::MAX);
    let first = store.account_ledger(&planned.account.id, None, limit).await?.items;
    let planned_as = |(entry, imported): (&LedgerEntry, &ImportedEntry)| {
        (entry.kind, entry.amount) == (imported.entry.kind, imported.entry.amount)
    };
    let holds = planned.account.secrets().map(|secret| secret.hash).next();
    let is_holder = match holds {
        Some(hash) => store.account_by_key(&hash).await?.is_none_or(|holder| holder.id == planned.account.id),
        None => true,
    };
    Ok(is_holder && first.len() >= entries.len() && first.iter().zip(entries).all(planned_as))
}
