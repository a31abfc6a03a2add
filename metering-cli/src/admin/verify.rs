//! `metering admin verify`: proof that the books add up.

use std::io::Write;

use clap::Args;
use metering_core::{AccountId, Credits, Discrepancy, Verification};
use serde::Serialize;

use super::session::Session;
use crate::failure::Failure;
use crate::output::{Format, json_line};
use crate::table::{Column, Table};

/// Check the database file, and recompute every account's money from ledger and usage; exit code 3 when any amount differs.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads one moment of the store, also while servers charge on it. For every account, exactly:
balance = purchased + granted - used = sum of its ledger - sum of its usage.
Of a SQLite file, every page and every index is checked too, and that every account has the key it should have; damage
ends with exit code 1.

Examples:
  metering admin verify
  metering admin verify --json")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    accounts: u64,
    discrepancies: Vec<Difference<'a>>,
}

#[derive(Debug, Serialize)]
struct Difference<'a> {
    org_id: &'a AccountId,
    amount: &'static str,
    recorded: Credits,
    computed: Credits,
}

impl<'a> From<&'a Discrepancy> for Difference<'a> {
    fn from(found: &'a Discrepancy) -> Self {
        Self { org_id: &found.account, amount: found.amount, recorded: found.recorded, computed: found.computed }
    }
}

const COLUMNS: &[Column] =
    &[Column::Text("ORG_ID"), Column::Text("AMOUNT"), Column::Number("RECORDED"), Column::Number("COMPUTED")];

impl VerifyArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let found = session.store().await?.verify().await?;
        let printed = write(out, self.format.json, &found).and_then(|()| Ok(out.flush()?));
        // Whether or not anybody read it: a discrepancy must not end in exit code 0 because of a closed pipe.
        outcome(&found)?;
        printed
    }
}

/// What a verification means for the exit code.
pub(crate) fn outcome(found: &Verification) -> Result<(), Failure> {
    match found.discrepancies.len() {
        0 => Ok(()),
        1 => Err(Failure::Discrepancies("1 amount is not what ledger and usage add up to".to_owned())),
        n => Err(Failure::Discrepancies(format!("{n} amounts are not what ledger and usage add up to"))),
    }
}

fn write(out: &mut dyn Write, json: bool, found: &Verification) -> Result<(), Failure> {
    let discrepancies = &found.discrepancies;
    if json {
        let discrepancies = discrepancies.iter().map(Difference::from).collect();
        return json_line(out, &Document { accounts: found.accounts, discrepancies });
    }
    if discrepancies.is_empty() {
        return Ok(writeln!(out, "Accounts verified: {}. Everything adds up exactly.", found.accounts)?);
    }
    let mut table = Table::new(COLUMNS);
    for Discrepancy { account, amount, recorded, computed } in discrepancies {
        table.row([account, amount, recorded, computed]);
    }
    table.write(out)
}
