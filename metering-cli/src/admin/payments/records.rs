//! `payments records`: the payments that were credited.

use std::io::Write;

use clap::Args;
use metering_core::administration::payments::Token;
use metering_core::payments::{PaymentRecord, Plan};
use metering_core::store::Page;
use metering_core::wire::PaymentRecordsDocument;

use crate::admin::session::{PAGE, Session};
use crate::failure::Failure;
use crate::output::{Format, json_line};
use crate::table::{Column, Table};

/// List the payments that were credited.
#[derive(Debug, Args)]
#[command(after_help = "\
They are in the order they were recorded. Holds the whole list in memory; `metering admin export payments` does not.

Examples:
  metering admin payments records
  metering admin payments records --json")]
pub(crate) struct RecordsArgs {
    #[command(flatten)]
    format: Format,
}

const COLUMNS: &[Column] = &[
    Column::Number("CHAIN_ID"),
    Column::Text("TX_HASH"),
    Column::Text("MINED"),
    Column::Text("PAYER"),
    Column::Text("PAID"),
    Column::Text("ORG_ID"),
    Column::Text("USED_AS"),
    Column::Text("PLAN"),
    Column::Text("RECORDED"),
    Column::Text("STATE"),
];

impl RecordsArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let store = session.store().await?;
        let plans = store.plans().await?;
        let mut records = Vec::new();
        let mut after = None;
        loop {
            let page = store.payments(after.as_ref(), PAGE).await?;
            records.extend(page.items);
            if page.next.is_none() {
                break;
            }
            after = page.next;
        }
        if self.format.json {
            return json_line(out, &PaymentRecordsDocument::new(&Page { items: records, next: None }, &plans));
        }
        write_table(out, &records, &plans)
    }
}

fn write_table(out: &mut dyn Write, records: &[PaymentRecord], plans: &[Plan]) -> Result<(), Failure> {
    let mut table = Table::new(COLUMNS);
    for record in records {
        let payment = &record.payment;
        table.row([
            &payment.tx.chain_id,
            &payment.tx.hash,
            &payment.mined_at,
            &payment.payer.to_checksummed(),
            &Token::of(plans, &payment.target()).amount(payment.amount),
            &record.account,
            &record.used_as.as_str(),
            &record.plan_id.as_deref().unwrap_or("-"),
            &record.recorded_at,
            &record.settlement.as_str(),
        ]);
    }
    table.write(out)
}
