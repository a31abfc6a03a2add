//! Recent activity: a ring of entries per account, and the ledger's entries beside it.

use std::collections::BTreeMap;

use deadpool_postgres::GenericClient;
use metering_core::{ACTIVITY_KEPT, Activity, ActivityKind, ClientSource, Credits, LedgerKind, Timestamp, UsageLine};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::{Result, corrupt};
use crate::known::Known;
use crate::rows::{all, amount, first, payment_ref, timestamp, unsigned};

/// The size of the ring.
const SLOTS: i64 = ACTIVITY_KEPT as i64;

/// An entry to be written, with its number among its account's.
#[derive(Debug)]
pub(crate) struct Entry<'p> {
    pub(crate) account: i64,
    pub(crate) entry: i64,
    pub(crate) line: i64,
    pub(crate) amount: i64,
    pub(crate) refund: bool,
    pub(crate) calls: i64,
    pub(crate) path: Option<&'p str>,
}

/// The entries without those whose place a later one of the same batch takes: a statement writes each row once.
pub(crate) fn without_overwritten(entries: Vec<Entry<'_>>) -> Vec<Entry<'_>> {
    let mut places: BTreeMap<(i64, i64), Entry<'_>> = BTreeMap::new();
    for entry in entries {
        places.insert((entry.account, entry.entry % SLOTS), entry);
    }
    places.into_values().collect()
}

pub(crate) const APPEND: &str = "INSERT INTO activity \
     (account, slot, entry, line, amount, refund, calls, request_path, created_at) \
     SELECT account, slot, entry, line, amount, refund, calls, request_path, $9 \
     FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BOOLEAN[], $7::BIGINT[], \
     $8::TEXT[]) AS new (account, slot, entry, line, amount, refund, calls, request_path) \
     ON CONFLICT (account, slot) DO UPDATE SET entry = excluded.entry, line = excluded.line, \
     amount = excluded.amount, refund = excluded.refund, calls = excluded.calls, \
     request_path = excluded.request_path, created_at = excluded.created_at";

/// The columns of [`APPEND`].
pub(crate) struct Rows<'p> {
    accounts: Vec<i64>,
    slots: Vec<i64>,
    entries: Vec<i64>,
    lines: Vec<i64>,
    amounts: Vec<i64>,
    refunds: Vec<bool>,
    calls: Vec<i64>,
    paths: Vec<Option<&'p str>>,
    now: i64,
}

impl<'p> Rows<'p> {
    pub(crate) fn new(entries: &[Entry<'p>], now: Timestamp) -> Self {
        Self {
            accounts: entries.iter().map(|entry| entry.account).collect(),
            slots: entries.iter().map(|entry| entry.entry % SLOTS).collect(),
            entries: entries.iter().map(|entry| entry.entry).collect(),
            lines: entries.iter().map(|entry| entry.line).collect(),
            amounts: entries.iter().map(|entry| entry.amount).collect(),
            refunds: entries.iter().map(|entry| entry.refund).collect(),
            calls: entries.iter().map(|entry| entry.calls).collect(),
            paths: entries.iter().map(|entry| entry.path).collect(),
            now: now.unix_millis(),
        }
    }

    pub(crate) fn values(&self) -> [&(dyn ToSql + Sync); 9] {
        [
            &self.accounts,
            &self.slots,
            &self.entries,
            &self.lines,
            &self.amounts,
            &self.refunds,
            &self.calls,
            &self.paths,
            &self.now,
        ]
    }
}

/// An account's last entries, of usage and ledger together, the one written last first.
pub(crate) async fn newest<C: GenericClient>(
    client: &C,
    known: &Known,
    account: i64,
    limit: u32,
) -> Result<Vec<Activity>> {
    let mut entries = usage_entries(client, known, account, limit).await?;
    entries.extend(ledger_entries(client, account, limit).await?);
    entries.sort_unstable_by_key(|(entry, _)| std::cmp::Reverse(*entry));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(entries.into_iter().take(limit).map(|(_, activity)| activity).collect())
}

async fn usage_entries<C: GenericClient>(
    client: &C,
    known: &Known,
    account: i64,
    limit: u32,
) -> Result<Vec<(i64, Activity)>> {
    // Older ones may still be there, where the ledger's entries left their places alone, but with gaps between them.
    let sql = "SELECT entry, line, amount, refund, calls, request_path, created_at FROM activity \
               WHERE account = $1 AND entry > (SELECT entries FROM meter WHERE account = $1) - $2 \
               ORDER BY entry DESC LIMIT $3";
    let rows = all(client, sql, &[&account, &SLOTS, &i64::from(limit)]).await?;
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        let (entry, line): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        entries.push((entry, usage_entry(&row, entry, known.line(client, line).await?)?));
    }
    Ok(entries)
}

fn usage_entry(row: &Row, entry: i64, line: UsageLine) -> Result<Activity> {
    let refund: bool = row.try_get(3)?;
    Ok(Activity {
        id: format!("act_{entry}"),
        kind: if refund { ActivityKind::UsageRefund } else { ActivityKind::Usage },
        amount: amount(row, 2)?,
        description: None,
        line: Some(line),
        request_path: row.try_get::<_, Option<&str>>(5)?.map(Into::into),
        calls: unsigned(row, 4)?,
        payment: None,
        created_at: timestamp(row, 6)?,
    })
}

async fn ledger_entries<C: GenericClient>(client: &C, account: i64, limit: u32) -> Result<Vec<(i64, Activity)>> {
    let sql = "SELECT entry, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id FROM ledger \
               WHERE account = $1 ORDER BY entry DESC LIMIT $2";
    let rows = all(client, sql, &[&account, &i64::from(limit)]).await?;
    rows.iter().map(ledger_entry).collect()
}

fn ledger_entry(row: &Row) -> Result<(i64, Activity)> {
    let entry: i64 = row.try_get(0)?;
    let activity = Activity {
        id: format!("act_{entry}"),
        kind: ActivityKind::Ledger(ledger_kind(row.try_get(1)?)?),
        amount: Credits::from_atoms(row.try_get(2)?),
        description: Some(row.try_get(3)?),
        line: None,
        request_path: None,
        calls: 0,
        payment: payment_ref(row, 5)?,
        created_at: timestamp(row, 4)?,
    };
    Ok((entry, activity))
}

/// The usage line of a number.
pub(crate) async fn usage_line<C: GenericClient>(client: &C, number: i64) -> Result<UsageLine> {
    let sql = "SELECT route_template, http_method, source FROM usage_line WHERE id = $1";
    let row = first(client, sql, &[&number]).await?;
    let row = row.ok_or_else(|| corrupt(format_args!("usage line {number} is missing")))?;
    let (route, method): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
    let source = ClientSource::from_name(row.try_get(2)?);
    Ok(UsageLine { route_template: route.into(), http_method: method.into(), source })
}

/// A stored ledger kind.
pub(crate) fn ledger_kind(name: &str) -> Result<LedgerKind> {
    LedgerKind::from_name(name).ok_or_else(|| corrupt(format_args!("ledger kind {name:?} is not known")))
}
