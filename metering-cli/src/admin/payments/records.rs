//! `payments records`: the payments that were credited.

use std::io::Write;

use clap::Args;
use metering_core::chains::{Address, TokenUnits, TxHash};
use metering_core::payments::{PaymentRecord, Plan};
use metering_core::{AccountId, Timestamp};
use serde::Serialize;

use super::token::Token;
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

#[derive(Debug, Serialize)]
struct Document<'a> {
    payments: Vec<RecordDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct RecordDocument<'a> {
    chain_id: u64,
    tx_hash: TxHash,
    block_number: u64,
    mined_at: Timestamp,
    payer_address: Address,
    recipient: Address,
    token_contract: Address,
    token_symbol: Option<&'a str>,
    amount_atomic: TokenUnits,
    amount_human: Option<String>,
    org_id: &'a AccountId,
    used_as: &'static str,
    plan_id: Option<&'a str>,
    recorded_at: Timestamp,
    state: &'static str,
    reversed_at: Option<Timestamp>,
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
            let payments = records.iter().map(|record| RecordDocument::new(record, &plans)).collect();
            return json_line(out, &Document { payments });
        }
        write_table(out, &records, &plans)
    }
}

impl<'a> RecordDocument<'a> {
    fn new(record: &'a PaymentRecord, plans: &'a [Plan]) -> Self {
        let payment = &record.payment;
        let token = Token::of(plans, &payment.target());
        Self {
            chain_id: payment.tx.chain_id,
            tx_hash: payment.tx.hash,
            block_number: payment.block_number,
            mined_at: payment.mined_at,
            payer_address: payment.payer,
            recipient: payment.recipient,
            token_contract: payment.token,
            token_symbol: token.symbol(),
            amount_atomic: payment.amount,
            amount_human: token.human(payment.amount),
            org_id: &record.account,
            used_as: record.used_as.as_str(),
            plan_id: record.plan_id.as_deref(),
            recorded_at: record.recorded_at,
            state: record.settlement.as_str(),
            reversed_at: record.settlement.reversed_at(),
        }
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
