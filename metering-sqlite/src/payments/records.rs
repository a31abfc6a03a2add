//! Payment records, which ensure that each transaction counts once, and payments for existing accounts.

use metering_core::backend::decision::{self, CreditChanges, CreditFacts, Decided};
use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};
use metering_core::chains::TxRef;
use metering_core::payments::{Payment, PaymentRecord, PaymentSettlement, PaymentUse, SoldPlan};
use metering_core::store::{Cursor, Page, PaymentCredit, PaymentCredited};
use metering_core::{Account, Credits, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::access::{accounts, wallets};
use crate::error::{Result, corrupt, store_error};
use crate::journal::Snapshot;
use crate::money::ledger;
use crate::payments::quotes;
use crate::rows::{address, all, first, parse, timestamp, tx, units, units_column};

pub(crate) const COLUMNS: &str = "p.id, p.chain_id, p.tx_hash, p.payer, p.recipient, p.token, p.amount, p.block_number, \
     p.mined_at, a.org_id, p.used_as, p.plan_id, p.recorded_at, p.block_hash, p.settlement, p.reversed_at, \
     p.plan_label, p.bonus_credits, p.token_symbol, p.token_decimals";

pub(crate) fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM payment p JOIN account a ON a.id = p.account WHERE {condition}")
}

/// The record of a transaction, if it was used.
pub(crate) fn by_tx(connection: &Connection, tx: &TxRef) -> Result<Option<PaymentRecord>> {
    let condition = "p.chain_id = ?1 AND p.tx_hash = ?2";
    let mut statement = connection.prepare_cached(&select(condition)).map_err(store_error)?;
    let values = params![tx.chain_id.cast_signed(), tx.hash.as_bytes()];
    Ok(first(&mut statement, values, record)?.map(|(_, record)| record))
}

/// Records after a row number, at most `limit`.
pub(crate) fn list(connection: &Connection, after: Option<&Cursor>, limit: u32) -> Result<Page<PaymentRecord>> {
    let after = row_of_cursor(after)?;
    let mut statement = connection.prepare_cached(&select("p.id > ?1 ORDER BY p.id LIMIT ?2")).map_err(store_error)?;
    let rows = all(&mut statement, [after, one_more_than(limit)], record)?;
    Ok(page_of_rows(rows, limit))
}

/// Credits a payment to an existing account.
pub(crate) fn credit(connection: &Snapshot<'_>, credit: PaymentCredit) -> Result<PaymentCredited> {
    let facts = credit_facts(connection, &credit)?;
    match decision::credit_payment(credit, facts) {
        Decided::Accepted(changes) => write_credit(connection, changes).map(PaymentCredited::Account),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// What is read before a payment is credited.
pub(crate) fn credit_facts(connection: &Snapshot<'_>, credit: &PaymentCredit) -> Result<CreditFacts<i64>> {
    Ok(CreditFacts {
        account: accounts::by_id(connection, &credit.account)?,
        record: by_tx(connection, &credit.payment.tx)?,
        quote: quotes::paid_by(connection, &credit.payment)?,
    })
}

/// Writes a credited payment, and returns the account after it.
pub(crate) fn write_credit(connection: &Connection, changes: CreditChanges<i64>) -> Result<Account> {
    let CreditChanges { posted, record, link, quote } = changes;
    ledger::write(connection, &posted)?;
    if let Some(wallet) = link {
        wallets::link(connection, &wallet, posted.row)?;
    }
    insert(connection, posted.row, &record)?;
    if let Some((nonce, state)) = quote {
        quotes::consume(connection, &nonce, posted.row, record.payment.tx, &state)?;
    }
    Ok(posted.account)
}

/// Inserts a record. `account` is the row number of its account.
pub(crate) fn insert(connection: &Connection, account: i64, record: &PaymentRecord) -> Result<()> {
    let sql = "INSERT INTO payment (chain_id, tx_hash, payer, recipient, token, amount, block_number, mined_at, \
               account, used_as, plan_id, recorded_at, block_hash, settlement, reversed_at, plan_label, bonus_credits, \
               token_symbol, token_decimals) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";
    let Payment { tx, payer, recipient, token, amount, block_number, block_hash, mined_at } = &record.payment;
    let sold = record.sold.as_ref();
    let values = params![
        tx.chain_id.cast_signed(),
        tx.hash.as_bytes(),
        payer.as_bytes(),
        recipient.as_bytes(),
        token.as_bytes(),
        units_column(*amount),
        block_number.cast_signed(),
        mined_at.unix_millis(),
        account,
        record.used_as.as_str(),
        record.plan_id,
        record.recorded_at.unix_millis(),
        block_hash,
        record.settlement.as_str(),
        record.settlement.reversed_at().map(Timestamp::unix_millis),
        sold.map(|sold| &sold.label),
        sold.and_then(|sold| sold.bonus_credits).map(Credits::atoms),
        sold.map(|sold| &sold.token_symbol),
        sold.map(|sold| sold.token_decimals),
    ];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

/// Reads a record and its row number.
pub(crate) fn record(row: &Row<'_>) -> rusqlite::Result<Result<(i64, PaymentRecord)>> {
    let id: i64 = row.get(0)?;
    let payment = Payment {
        tx: tx(row, 1)?,
        payer: address(row, 3)?,
        recipient: address(row, 4)?,
        token: address(row, 5)?,
        amount: units(row, 6)?,
        block_number: row.get::<_, i64>(7)?.cast_unsigned(),
        block_hash: row.get(13)?,
        mined_at: timestamp(row, 8)?,
    };
    let (org_id, used_as): (String, String) = (row.get(9)?, row.get(10)?);
    let (plan_id, recorded_at) = (row.get(11)?, timestamp(row, 12)?);
    let (settlement, reversed_at): (String, Option<i64>) = (row.get(14)?, row.get(15)?);
    let reversed_at = reversed_at.map(Timestamp::from_unix_millis);
    let sold = sold(row)?;
    let read = || {
        let unknown = || corrupt(format_args!("unknown use {used_as:?} of a payment"));
        let (account, used_as) = (parse(&org_id)?, PaymentUse::from_name(&used_as).ok_or_else(unknown)?);
        let not_settled = || corrupt(format_args!("unknown settlement {settlement:?} of a payment"));
        let settlement = PaymentSettlement::from_parts(&settlement, reversed_at).ok_or_else(not_settled)?;
        Ok((id, PaymentRecord { payment, account, used_as, plan_id, sold, recorded_at, settlement }))
    };
    Ok(read())
}

fn sold(row: &Row<'_>) -> rusqlite::Result<Option<SoldPlan>> {
    let Some(label) = row.get(16)? else { return Ok(None) };
    let bonus_credits = row.get::<_, Option<i64>>(17)?.map(Credits::from_atoms);
    Ok(Some(SoldPlan { label, bonus_credits, token_symbol: row.get(18)?, token_decimals: row.get(19)? }))
}
