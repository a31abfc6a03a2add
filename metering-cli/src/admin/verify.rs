//! `metering admin verify`: proves that the books add up.

use std::io::Write;

use clap::Args;
use metering_admin::wire::{DiscrepancyDocument, VerificationDocument};
use serde::Serialize;

use super::administrator::Administrator;
use super::log::VerifiedLog;
use super::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::progress::{Progress, Unit};
use crate::table::table;

/// Check the database file, and recompute every account's amounts from ledger, usage and holds. Exit code 3 if any
/// differs.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads a snapshot of one moment, even while servers use the store. For every account, exactly:
balance = purchased + granted - used - held
        = sum of its ledger - sum of its usage - sum of its open holds.
In a SQLite file, also checks every page and index, and that every account has the key it should have; damage ends with
exit code 1. If the store has a log, hashes it again, unless a server is asked.

Examples:
  metering admin verify
  metering admin verify --json
  metering admin verify --server https://admin.example.com")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    books: &'a VerificationDocument,
    /// `None` without a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_faults: Option<&'a [String]>,
}

impl VerifyArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let progress = Progress::new();
        progress.begin("Verifying the books", Unit::Steps, None);
        let found = verified(&administrator).await;
        progress.end();
        let (found, log) = found?;
        let printed = write(out, self.format.json, &found, log.as_ref()).and_then(|()| Ok(out.flush()?));
        // Even if printing failed: a discrepancy must not end in exit code 0 because of a closed pipe.
        outcome(found.discrepancies.len())?;
        log.map_or(Ok(()), |log| log.outcome())?;
        printed
    }
}

/// The books, and the log if there is one.
async fn verified(administrator: &Administrator) -> Result<(VerificationDocument, Option<VerifiedLog>), Failure> {
    let found = administrator.verify().await?;
    let log = match administrator.store() {
        Some(store) => VerifiedLog::of(store).await?,
        None => None,
    };
    Ok((found, log))
}

/// A failure if the books do not add up.
pub(crate) fn outcome(discrepancies: usize) -> Result<(), Failure> {
    match discrepancies {
        0 => Ok(()),
        1 => Err(Failure::Discrepancies("1 amount differs from the sum of ledger, usage and holds".to_owned())),
        n => Err(Failure::Discrepancies(format!("{n} amounts differ from the sum of ledger, usage and holds"))),
    }
}

fn write(
    out: &mut dyn Write,
    json: bool,
    found: &VerificationDocument,
    log: Option<&VerifiedLog>,
) -> Result<(), Failure> {
    if json {
        let log_faults = log.map(|log| log.faults.as_slice());
        return write_json(out, &Document { books: found, log_faults });
    }
    if found.discrepancies.is_empty() {
        writeln!(out, "Accounts verified: {}. Everything adds up exactly.", found.accounts)?;
    } else {
        table(out, &found.discrepancies)?;
    }
    log.map_or(Ok(()), |log| log.write(out))?;
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
    table!(out, rows, |DiscrepancyDocument { org_id, amount, recorded, computed }| {
        id("ACCOUNT") => org_id,
        word("AMOUNT") => amount,
        number("RECORDED") => recorded,
        number("COMPUTED") => computed,
    })
}
