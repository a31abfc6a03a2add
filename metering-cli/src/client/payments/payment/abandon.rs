//! Abandons a pending payment: without asking if it is certain that nothing was paid, or else only if the user types a
//! word.

use std::io::{self, BufRead, Write};

use serde::Serialize;

use crate::client::payments::payment::arguments::PaymentArgs;
use crate::client::payments::payment::connection::{ChainConnection, TxState};
use crate::client::payments::payment::entry::Entry;
use crate::client::payments::payment::journal::Journal;
use crate::failure::Failure;
use crate::output::{notice, write_json};

const CONFIRMATION: &str = "abandon";

#[derive(Serialize)]
struct Abandoned {
    status: &'static str,
    plan_id: String,
    chain_id: u64,
    tx_hash: Option<String>,
    kept_in: Option<String>,
}

/// Abandons the pending payment.
pub(crate) async fn abandon(
    journal: Journal,
    entry: Option<Entry>,
    args: &PaymentArgs,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let Some(entry) = entry else {
        return Err(Failure::NotFound("no payment is pending, so there is none to abandon".to_owned()));
    };
    let free = entry.is_certainly_unpaid();
    if !free && !has_failed(&entry, args).await {
        confirm_by_typing(&entry, &mut io::stdin().lock())?;
    }
    let description = entry.to_string();
    let mut abandoned = Abandoned {
        status: "abandoned",
        plan_id: entry.bill.plan_id.clone(),
        chain_id: entry.bill.chain_id,
        tx_hash: entry.payment.hash().map(|hash| hash.to_string()),
        kept_in: None,
    };
    let pending = journal.resume(entry);
    if free {
        pending.finish()?;
    } else {
        let (_journal, file) = pending.set_aside("abandoned")?;
        abandoned.kept_in = Some(file.display().to_string());
    }
    if json {
        return write_json(out, &abandoned);
    }
    writeln!(out, "Abandoned {description}.")?;
    if let Some(file) = abandoned.kept_in {
        writeln!(out, "A record is kept in {file}.")?;
    }
    Ok(())
}

/// Whether the payment failed permanently, according to the chain. If the chain cannot be read, it counts as pending.
async fn has_failed(entry: &Entry, args: &PaymentArgs) -> bool {
    let Some(signed) = entry.payment.signed() else { return false };
    let Ok(Some(connection)) = args.rpc_url().and_then(|url| ChainConnection::open(&entry.bill, url)) else {
        return false;
    };
    matches!(connection.state(signed).await, Ok(TxState::Dead(_)))
}

fn confirm_by_typing(entry: &Entry, answers: &mut dyn BufRead) -> Result<(), Failure> {
    notice(&format!(
        "This payment may have been made, or may still be made: {entry}.\nIf you abandon it and pay again, you may \
         pay twice. Type {CONFIRMATION} to proceed:"
    ));
    let mut line = String::new();
    let read = answers.read_line(&mut line);
    if read.is_ok() && line.trim() == CONFIRMATION {
        return Ok(());
    }
    Err(Failure::Conflict(format!(
        "the payment may have been made, so it is kept: continue it with `{}`, or enter {CONFIRMATION} on standard input to \
        abandon it",
        entry.command()
    )))
}
