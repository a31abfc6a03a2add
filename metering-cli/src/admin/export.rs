//! `metering admin export`: writes accounts, ledger, payments and usage for other programs, page by page, so that
//! memory use does not grow with the store.

mod columns;
mod counted;
mod day_files;
mod days;
mod hashed;
mod keyed;
mod sink;

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use flate2::Compression;
use flate2::write::GzEncoder;
use indicatif::HumanCount;
use metering_core::store::{Cursor, Page};
use metering_core::{Clock, FullStore, StoreError, SystemClock};
use metering_sql::transfer::Section;

use self::columns::Exported;
use self::counted::Counted;
use self::days::Days;
use self::sink::Sink;
use super::session::Session;
use crate::failure::Failure;
use crate::new_file::NewFile;
use crate::output::notice;
use crate::progress::{Progress, Unit, size};

/// How many items are read per page.
const PAGE: u32 = 1_000;

/// Write all accounts, ledger entries, payments or daily usage totals as CSV or JSON lines.
#[derive(Debug, Args)]
#[command(after_help = "\
Amounts are written twice: in credits, rounded to ten decimal places, and exactly, in atoms of 1/7,200,000,000 credit.
Spreadsheets treat text that starts with = + - or @ as a formula, and an email address may start that way. So CSV puts
an apostrophe in front of such text, and of text that starts with an apostrophe, a tab or a line break; remove one
apostrophe to read it back. JSON lines contain the text unchanged.
Each page of 1,000 rows is a snapshot of one moment; rows written during the export may or may not be in later pages.

Examples:
  metering admin export ledger > ledger.csv
  metering admin export usage --from 2026-11-01 --to 2026-11-30 --format jsonl --output november.jsonl
  metering admin export usage --gzip --incremental /srv/usage
  metering admin export accounts --with-hashes --format jsonl --output accounts.jsonl")]
pub(crate) struct ExportArgs {
    /// What to export.
    #[arg(value_name = "WHAT")]
    what: ExportKind,
    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    format: ExportFormat,
    /// For accounts: add the hashes of their keys and their used transactions, so that `metering admin import` or
    /// another service can take them over. Keep the file private.
    #[arg(long)]
    with_hashes: bool,
    #[command(flatten)]
    days: Days,
    /// For usage: write each whole UTC day to a file of its own in this directory, such as usage-2026-11-21.csv. Run it
    /// again to add the days since; of the last 35 days, files whose usage has changed are replaced.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "force"])]
    incremental: Option<PathBuf>,
    /// Compress with gzip.
    #[arg(long)]
    gzip: bool,
    /// The file to create, or - for standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ExportKind {
    /// Every account, including revoked ones, oldest first.
    Accounts,
    /// Every purchase, bonus, grant and adjustment, in the order they were written.
    Ledger,
    /// Every credited payment, in the order they were recorded.
    Payments,
    /// Calls and credits per account, UTC day, route, method, source and key, by ascending day.
    Usage,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ExportFormat {
    /// Comma-separated values with a line of headings (RFC 4180).
    Csv,
    /// One JSON object per line.
    Jsonl,
}

/// What an export has written.
#[derive(Debug, Clone, Copy)]
struct Written {
    rows: u64,
    bytes: u64,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.rows == 1 { "row" } else { "rows" };
        write!(f, "{} {noun}, {}", HumanCount(self.rows), size(self.bytes))
    }
}

impl ExportKind {
    const fn section(self) -> Section {
        match self {
            Self::Accounts => Section::Accounts,
            Self::Ledger => Section::Ledger,
            Self::Payments => Section::Payments,
            Self::Usage => Section::Usage,
        }
    }
}

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

    /// Writes a file, which appears when it is finished.
    async fn write_file(
        &self,
        store: &dyn FullStore,
        target: &Path,
        replace: bool,
        progress: &Progress,
        days: Days,
    ) -> Result<(NewFile, Written), Failure> {
        let mut file = NewFile::next_to(target, replace)?;
        let mut writer = BufWriter::new(&mut file);
        let written = match self.write(store, &mut writer, progress, days).await {
            Ok(written) => writer.flush().map(|()| written).map_err(Failure::Output),
            failed => failed,
        };
        drop(writer);
        let written = written.map_err(|failure| match failure {
            Failure::Output(error) => file.cannot_write(&error),
            other => other,
        })?;
        Ok((file, written))
    }

    async fn write(
        &self,
        store: &dyn FullStore,
        out: &mut dyn Write,
        progress: &Progress,
        days: Days,
    ) -> Result<Written, Failure> {
        let mut out = Counted::new(out);
        let rows = if self.gzip {
            let mut gzip = GzEncoder::new(&mut out, Compression::default());
            let rows = self.write_rows(store, &mut gzip, progress, days).await?;
            gzip.finish()?;
            rows
        } else {
            self.write_rows(store, &mut out, progress, days).await?
        };
        Ok(Written { rows, bytes: out.bytes })
    }

    async fn write_rows(
        &self,
        store: &dyn FullStore,
        out: &mut dyn Write,
        progress: &Progress,
        days: Days,
    ) -> Result<u64, Failure> {
        match self.what {
            ExportKind::Accounts if self.with_hashes => {
                let page = async |after: Option<&Cursor>| hashed::page(store, store.accounts(after, PAGE).await?).await;
                self.pages(out, progress, page).await
            }
            ExportKind::Accounts => self.pages(out, progress, async |after| store.accounts(after, PAGE).await).await,
            ExportKind::Ledger => self.pages(out, progress, async |after| store.ledger(after, PAGE).await).await,
            ExportKind::Payments => self.pages(out, progress, async |after| store.payments(after, PAGE).await).await,
            ExportKind::Usage => {
                let page =
                    async |after: Option<&Cursor>| keyed::page(store, days.page(store, after, PAGE).await?).await;
                self.pages(out, progress, page).await
            }
        }
    }

    /// Writes all pages, and returns how many rows there are.
    async fn pages<T: Exported>(
        &self,
        out: &mut dyn Write,
        progress: &Progress,
        page_after: impl AsyncFn(Option<&Cursor>) -> Result<Page<T>, StoreError>,
    ) -> Result<u64, Failure> {
        let mut sink = match self.format {
            ExportFormat::Csv => Sink::csv(out, T::COLUMNS)?,
            ExportFormat::Jsonl => Sink::json_lines(out),
        };
        let (mut rows, mut after): (u64, Option<Cursor>) = (0, None);
        loop {
            let page = page_after(after.as_ref()).await?;
            for item in &page.items {
                sink.write(item)?;
            }
            let count = u64::try_from(page.items.len()).unwrap_or(u64::MAX);
            rows = rows.saturating_add(count);
            progress.add(count);
            if page.next.is_none() {
                sink.finish()?;
                return Ok(rows);
            }
            after = page.next;
        }
    }
}

impl From<csv::Error> for Failure {
    /// Writing CSV fails only when the output fails: every row has as many cells as there are headings.
    fn from(error: csv::Error) -> Self {
        Self::Output(match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        })
    }
}
