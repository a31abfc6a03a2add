//! The settlement status of credited payments.

use metering_core::Timestamp;
use metering_core::backend::decision::{self, Decided, SettleChanges, SettleFacts};
use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};
use metering_core::money::LedgerKind;
use metering_core::payments::{PaymentRecord, PaymentUse};
use metering_core::store::{Cursor, Page, PaymentSettled, SettlementChange};
use rusqlite::{Connection, params};

use crate::access::accounts;
use crate::error::{Result, store_error};
use crate::journal::Snapshot;
use crate::money::ledger;
use crate::money::sum::{SUM, wide_sum};
use crate::offers::authorizations;
use crate::payments::records::{by_tx, record, select};
use crate::rows::all;

/// A chain's records that are not final, after a row number, at most `limit`.
pub(crate) fn unsettled(
    connection: &Connection,
    chain_id: u64,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<PaymentRecord>> {
    let condition = "p.chain_id = ?1 AND p.settlement <> 'final' AND p.id > ?2 ORDER BY p.id LIMIT ?3";
    let mut statement = connection.prepare_cached(&select(condition)).map_err(store_error)?;
    let values = [chain_id.cast_signed(), row_of_cursor(after)?, one_more_than(limit)];
    Ok(page_of_rows(all(&mut statement, values, record)?, limit))
}

/// Changes a payment's settlement status, if its record is still the one that the caller saw.
pub(crate) fn settle(connection: &Snapshot<'_>, change: &SettlementChange) -> Result<PaymentSettled> {
    let seen = &change.seen;
    let account = accounts::by_id(connection, &seen.account)?;
    let purchased = account.as_ref().map(|(row, _)| purchased_amount(connection, *row, seen)).transpose()?;
    let record = by_tx(connection, &seen.payment.tx)?;
    let facts = SettleFacts { record, account, purchased: purchased.unwrap_or_default() };
    let SettleChanges { record, posted, account } = match decision::settle_payment(change, facts)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    if let Some(posted) = &posted {
        ledger::write(connection, posted)?;
    }
    if record.used_as == PaymentUse::Authorization {
        authorizations::payment_took(connection, record.payment.tx, &change.step)?;
    }
    update(connection, &record)?;
    Ok(PaymentSettled::Changed(account))
}

/// How many atoms a payment's purchase credited. `account` is the row number of its account.
fn purchased_amount(connection: &Connection, account: i64, record: &PaymentRecord) -> Result<i128> {
    let sql = format!(
        "SELECT {SUM} FROM ledger WHERE account = ?1 AND tx_chain_id = ?2 AND tx_hash = ?3 AND kind IN (?4, ?5)"
    );
    let [signup, topup] = LedgerKind::PURCHASES.map(LedgerKind::as_str);
    let tx = record.payment.tx;
    let values = params![account, tx.chain_id.cast_signed(), tx.hash.as_bytes(), signup, topup];
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    statement.query_row(values, |row| wide_sum(row, 0)).map_err(store_error)
}

fn update(connection: &Connection, record: &PaymentRecord) -> Result<()> {
    let sql = "UPDATE payment SET block_number = ?3, block_hash = ?4, mined_at = ?5, settlement = ?6, reversed_at = ?7 \
               WHERE chain_id = ?1 AND tx_hash = ?2";
    let payment = &record.payment;
    let values = params![
        payment.tx.chain_id.cast_signed(),
        payment.tx.hash.as_bytes(),
        payment.block_number.cast_signed(),
        payment.block_hash,
        payment.mined_at.unix_millis(),
        record.settlement.as_str(),
        record.settlement.reversed_at().map(Timestamp::unix_millis),
    ];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}
