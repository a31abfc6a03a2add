//! Writes the ledger, and how its entries change an account's totals.

use std::collections::HashMap;

use metering_core::Timestamp;
use metering_core::backend::decision::EntryChanges;
use metering_core::money::NewLedgerEntry;
use metering_sql::{Value, values};

use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::events::outbox::{self, EventRows};
use crate::rows::{all, one};
use crate::statements::Statements;
use crate::transactions::serialized::next_ids;

/// Writes an entry each of several accounts, their new totals, and the events, in a few statements. The accounts were read
/// with their meters locked.
pub(crate) async fn write<C: GenericClient>(client: &C, changes: &[EntryChanges<i64>]) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let column = |of: fn(&EntryChanges<i64>) -> i64| changes.iter().map(of).collect::<Vec<i64>>();
    let sql = "UPDATE meter m SET balance = new.balance, purchased = new.purchased, granted = new.granted, \
               entries = m.entries + 1, alert_raised = new.raised \
               FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[]) \
               AS new (account, balance, purchased, granted, raised) WHERE m.account = new.account \
               RETURNING m.account, m.entries";
    let totals = [
        column(|changes| changes.account.totals.balance.atoms()),
        column(|changes| changes.account.totals.purchased.atoms()),
        column(|changes| changes.account.totals.granted.atoms()),
    ];
    let (rows, raised) =
        (column(|changes| changes.row), column(|changes| changes.account.alert.raised.number().into()));
    let mut numbers: HashMap<i64, i64> = HashMap::new();
    for row in all(client, sql, &[&rows, &totals[0], &totals[1], &totals[2], &raised]).await? {
        numbers.insert(row.try_get(0)?, row.try_get(1)?);
    }
    let entry = |EntryChanges { row, entry, written_at, .. }: &EntryChanges<i64>| {
        let number = numbers.get(row).ok_or_else(|| corrupt(format_args!("account {row} has no meter")))?;
        Ok(columns(*row, *number, entry, *written_at))
    };
    insert(client, changes.iter().map(entry).collect::<Result<_>>()?).await?;
    let events = changes.iter().flat_map(|changes| changes.events.iter().map(|event| (changes.row, event)));
    outbox::write_rows(client, EventRows::new(events)).await
}

/// Writes only the entries, each with its time; the caller updates the totals.
pub(crate) async fn append<C: GenericClient>(
    client: &C,
    account: i64,
    entries: &[(NewLedgerEntry, Timestamp)],
) -> Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    let sql = "UPDATE meter SET entries = entries + $2 WHERE account = $1 RETURNING entries";
    let last: i64 = one(client, sql, &[&account, &count]).await?.try_get(0)?;
    let numbered = (last - count + 1..).zip(entries);
    insert(client, numbered.map(|(number, (entry, at))| columns(account, number, entry, *at)).collect()).await
}

/// An entry, with its number within the account, except for its id.
fn columns(account: i64, number: i64, entry: &NewLedgerEntry, at: Timestamp) -> Vec<Value> {
    let NewLedgerEntry { kind, amount, description, payment } = entry;
    let (tx, plan) = payment.as_ref().map(|payment| (payment.tx, payment.plan_id.as_deref())).unzip();
    let mut values = values![account, number, kind, amount, description, at];
    values.extend(values![tx.map(|tx| tx.chain_id), tx.map(|tx| tx.hash), plan.flatten()]);
    values
}

async fn insert<C: GenericClient>(client: &C, mut rows: Vec<Vec<Value>>) -> Result<()> {
    let sql = "INSERT INTO ledger \
               (account, entry, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id, id) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let ids = next_ids(client, rows.len()).await?;
    for (row, id) in rows.iter_mut().zip(ids) {
        row.extend(values![id]);
    }
    Statements(client).run(sql, &rows).await.map(drop)
}
