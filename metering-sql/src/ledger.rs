//! Reads the ledger. Each backend writes it in its own way, with the totals of accounts.

use metering_core::backend::{credits, one_more_than, page_of_rows, row_of_cursor};
use metering_core::chains::TxRef;
use metering_core::money::{LedgerEntry, PaymentRef};
use metering_core::store::{Cursor, Page};
use metering_core::usage::{Activity, ActivityKind};
use metering_core::{AccountId, Credits, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{self, Record, table};
use crate::row::{Reader, Row, only};
use crate::sum::{SUM, wide_sum};
use crate::table::Table;
use crate::value::Value;
use crate::values;

impl Record for LedgerEntry {
    const TABLE: Table = table!("ledger" by ["id"] {
        Own(id), Account(account), Own(kind), Own(amount), Own(description), Own(created_at), Own(tx_chain_id),
        Own(tx_hash), Own(plan_id)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let Self { id, account, kind, amount, description, payment, created_at } = self;
        let mut values = values![id, account, kind, amount, description, created_at];
        let (tx, plan) = payment.as_ref().map(|payment| (payment.tx, payment.plan_id.as_deref())).unzip();
        values.extend(values![tx.map(|tx| tx.chain_id), tx.map(|tx| tx.hash), plan.flatten()]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (id, account, kind, amount) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let (description, created_at) = (row.next()?, row.next()?);
        let (tx, plan_id) = (row.optional_tx()?, row.next()?);
        let payment = tx.map(|tx| PaymentRef { tx, plan_id });
        Ok(Self { id, account, kind, amount, description, payment, created_at })
    }
}

/// What follows `FROM ledger` in the list of an account's entries. PostgreSQL's index has the account's own numbers of
/// its entries, which count up with their ids.
pub const LISTED: &str = "WHERE ledger.account = (SELECT a.id FROM account a WHERE a.org_id = ?1) AND ledger.id > ?2 \
     AND ledger.{entry} > coalesce((SELECT e.{entry} FROM ledger e WHERE e.id = ?2 \
       AND e.account = (SELECT a.id FROM account a WHERE a.org_id = ?1)), 0) \
     ORDER BY ledger.{entry} LIMIT ?3";

/// Entries of all accounts after an id, at most `limit`.
pub async fn list(db: &mut dyn Executor, after: Option<&Cursor>, limit: u32) -> Result<Page<LedgerEntry>> {
    let values = values![row_of_cursor(after)?, one_more_than(limit)];
    let found = record::list(db, "WHERE ledger.id > ?1 ORDER BY ledger.id LIMIT ?2", &values).await?;
    Ok(page(found, limit))
}

/// Entries of one account after an id, at most `limit`.
pub async fn of_account(
    db: &mut dyn Executor,
    account: &AccountId,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<LedgerEntry>> {
    let values = values![account, row_of_cursor(after)?, one_more_than(limit)];
    Ok(page(record::list(db, LISTED, &values).await?, limit))
}

/// The newest entries of the account with this row number as activity, newest first, at most `limit`, each with its
/// number in the account's history.
pub async fn newest(db: &mut dyn Executor, account: i64, limit: u32) -> Result<Vec<(i64, Activity)>> {
    let sql = "SELECT {entry}, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id FROM ledger \
               WHERE account = ?1 ORDER BY {entry} DESC LIMIT ?2";
    let entry = |row: &Row| {
        let number: i64 = row.get(0)?;
        // The schema ensures that both are set or neither is.
        let (tx, plan_id) = (Option::zip(row.get(5)?, row.get(6)?), row.get(7)?);
        let activity = Activity {
            id: format!("act_{number}"),
            kind: ActivityKind::Ledger(row.get(1)?),
            amount: row.get(2)?,
            description: Some(row.get(3)?),
            line: None,
            request_path: None,
            calls: 0,
            payment: tx.map(|(chain_id, hash)| PaymentRef { tx: TxRef { chain_id, hash }, plan_id }),
            key: None,
            created_at: row.get(4)?,
        };
        Ok((number, activity))
    };
    db.query(sql, &values![account, limit]).await?.iter().map(entry).collect()
}

fn page(entries: Vec<LedgerEntry>, limit: u32) -> Page<LedgerEntry> {
    page_of_rows(entries.into_iter().map(|entry| (entry.id, entry)).collect(), limit)
}

/// The sum of the entries of the account with this row number, written in a period of time.
pub async fn added_between(db: &mut dyn Executor, account: i64, from: Timestamp, until: Timestamp) -> Result<Credits> {
    let in_period = "account = ?1 AND created_at >= ?2 AND created_at < ?3";
    Ok(credits(sum(db, in_period, &values![account, from, until]).await?)?)
}

/// The sum of the entries that match, in atoms.
pub(crate) async fn sum(db: &mut dyn Executor, condition: &str, values: &[Value]) -> Result<i128> {
    let rows = db.query(&format!("SELECT {SUM} FROM ledger WHERE {condition}"), values).await?;
    wide_sum(only(&rows)?, 0)
}
