//! `payments records`: the payments that were credited.

use std::fmt::Display;
use std::io::Write;

use clap::Args;
use metering_admin::wire::{PaymentRecordDocument, PaymentRecordsDocument};
use metering_core::wire::ValueDocument;

use super::address::checksummed;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::{Column, Table};

/// List the payments that were credited.
#[derive(Debug, Args)]
#[command(after_help = "\
They are in the order they were recorded. For a payment that a processor took, the processor and its id are in the
place of the chain and the transaction. Holds the whole list in memory; `metering admin export payments` does not.

Examples:
  metering admin payments records
  metering admin payments records --json")]
pub(crate) struct RecordsArgs {
    #[command(flatten)]
    format: Format,
}

const COLUMNS: &[Column] = &[
    Column::number("CHAIN ID").optional(4),
    Column::id("TX HASH"),
    Column::time("MINED").optional(7),
    Column::id("PAYER").optional(3),
    Column::word("PAID"),
    Column::id("ACCOUNT"),
    Column::word("USED AS").optional(6),
    Column::word("PLAN").optional(5),
    Column::time("RECORDED").optional(1),
    Column::state("STATE").optional(2),
];

impl RecordsArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let records = session.administrator().await?.payment_records().await?;
        if self.format.json { write_json(out, &records) } else { write_table(out, &records) }
    }
}

fn write_table(out: &mut dyn Write, records: &PaymentRecordsDocument) -> Result<(), Failure> {
    let mut table = Table::new(COLUMNS);
    for record in &records.payments {
        let PaymentRecordDocument { chain_id, tx_hash, mined_at, org_id, used_as, recorded_at, state, .. } = record;
        let paid = ValueDocument::beside(record.paid(), record.value.as_ref());
        let (chain, hash, payer) = match (&record.processor, &record.processor_id) {
            (Some(processor), Some(id)) => (processor as &dyn Display, id, "-".to_owned()),
            _ => (chain_id as &dyn Display, tx_hash, checksummed(&record.payer_address)),
        };
        let plan = record.plan_id.as_deref().unwrap_or("-");
        table.row([chain, hash, mined_at, &payer, &paid, org_id, used_as, &plan, recorded_at, state]);
    }
    table.write(out)
}
