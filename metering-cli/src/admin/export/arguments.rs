//! What to export, in which form, and to where.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use metering_sql::transfer::Section;

use super::days::Days;

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
    pub(super) what: ExportKind,
    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub(super) format: ExportFormat,
    /// For accounts: add the hashes of their keys and their used transactions, so that `metering admin import` or
    /// another service can take them over. Keep the file private.
    #[arg(long)]
    pub(super) with_hashes: bool,
    #[command(flatten)]
    pub(super) days: Days,
    /// For usage: write each whole UTC day to its own file in this directory, such as usage-2026-11-21.csv. Run it
    /// again to add the days since; of the last 35 days, files whose usage has changed are replaced.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "force"])]
    pub(super) incremental: Option<PathBuf>,
    /// Compress with gzip.
    #[arg(long)]
    pub(super) gzip: bool,
    /// The file to create, or - for standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(super) output: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ExportKind {
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
pub(super) enum ExportFormat {
    /// Comma-separated values with a line of headings (RFC 4180).
    Csv,
    /// One JSON object per line.
    Jsonl,
}

impl ExportKind {
    pub(super) const fn section(self) -> Section {
        match self {
            Self::Accounts => Section::Accounts,
            Self::Ledger => Section::Ledger,
            Self::Payments => Section::Payments,
            Self::Usage => Section::Usage,
        }
    }
}
