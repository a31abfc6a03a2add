//! `metering admin verify`: proves that the books add up.

use std::io::Write;

use clap::Args;
use metering_admin::wire::{DiscrepancyDocument, VerificationDocument};

use super::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::progress::{Progress, Unit};
use crate::table::{Column, Table};

/// Check the database file, and recompute every account's amounts from ledger, usage and holds. Exit code 3 if any
/// differs.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads a snapshot of one moment, even while servers use the store. For every account, exactly:
balance = purchased + granted - used - held
        = sum of its ledger - sum of its usage - sum of its open holds.
In a SQLite file, also checks every page and index, and that every account has the key it should have; damage ends with
exit code 1.

Examples:
  metering admin verify
  metering admin verify --json
  metering admin verify --server https://admin.example.com")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    format: Format,
}

const COLUMNS: &[Column] =
    &[Column::id("ACCOUNT"), Column::word("AMOUNT"), Column::number("RECORDED"), Column::number("COMPUTED")];

impl VerifyArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let progress = Progress::new();
        progress.begin("Verifying the books", Unit::Steps, None);
        let found = administrator.verify().await;
        progress.end();
        let found = found?;
        let printed = write(out, self.format.json, &found).and_then(|()| Ok(out.flush()?));
        // Even if printing failed: a discrepancy must not end in exit code 0 because of a closed pipe.
        outcome(found.discrepancies.len())?;
        printed
    }
}

/// A failure if the books do not add up.
pub(crate) fn outcome(discrepancies: usize) -> Result<(), Failure> {
    match discrepancies {
        0 => Ok(()),
        1 => Err(Failure::Discrepancies("1 amount differs from the sum of ledger, usage and holds".to_owned())),
        n => Err(Failure::Discrepancies(format!("{n} amounts differ from the sum of ledger, usage and holds"))),
    }
}

fn write(out: &mut dyn Write, json: bool, found: &VerificationDocument) -> Result<(), Failure> {
    if json {
        return write_json(out, found);
    }
    if found.discrepancies.is_empty() {
        writeln!(out, "Accounts verified: {}. Everything adds up exactly.", found.accounts)?;
    } else {
        table(out, &found.discrepancies)?;
    }
    if found.restarted_budgets.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nA clock was set back by more than a day, and the periods of these budgets began again. No money is missing; \
         the keys could spend the budget of the period again:"
    )?;
    table(out, &found.restarted_budgets)
}

fn table(out: &mut dyn Write, rows: &[DiscrepancyDocument]) -> Result<(), Failure> {
    let mut table = Table::new(COLUMNS);
    for DiscrepancyDocument { org_id, amount, recorded, computed } in rows {
        table.row([org_id, amount, recorded, computed]);
    }
    table.write(out)
}
