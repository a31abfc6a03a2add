//! Usage: daily totals, and each account's recent entries, one row each. Real backends pack many entries into a row.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use metering_core::Day;
use metering_core::access::KeyNumber;
use metering_core::backend::credits;
use metering_core::charging::{UsageChange, UsageKind};
use metering_core::usage::{ACTIVITY_KEPT, Activity};
use metering_core::{AccountId, StoreError, Timestamp};
use metering_sql::{Executor, Result, Row, accounts, ledger, usage_lines, values};

use crate::statements::{NEXT_ID, Statements};

/// The table of recent entries.
pub(crate) const TABLE: &str = "CREATE TABLE history (id INTEGER PRIMARY KEY, account INTEGER NOT NULL, \
       line INTEGER NOT NULL, key INTEGER NOT NULL, kind INTEGER NOT NULL, calls INTEGER NOT NULL, \
       amount INTEGER NOT NULL, request_path TEXT, created_at INTEGER NOT NULL) STRICT; \
     CREATE INDEX history_account ON history (account, id)";

/// Writes the usage of a batch.
pub(crate) async fn write(db: &mut Statements<'_>, changes: &[UsageChange<i64, i64>], at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO usage_daily (day, account, line, key, calls, amount) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
               ON CONFLICT (day, account, line, key) \
               DO UPDATE SET calls = calls + excluded.calls, amount = amount + excluded.amount";
    // Added up first: with a refund, a total may be in range that is not without it.
    let mut totals: BTreeMap<_, (u64, i128)> = BTreeMap::new();
    for change in changes {
        let total = totals.entry((change.day, change.account, change.line, change.key)).or_default();
        *total = (total.0 + change.added_calls(), total.1 + i128::from(change.added_credits().atoms()));
    }
    let total = |((day, account, line, key), (calls, atoms)): ((Day, i64, i64, KeyNumber), (u64, i128))| {
        Ok(values![day, account, line, key, calls, credits(atoms)?])
    };
    db.execute(sql, &totals.into_iter().map(total).collect::<Result<Vec<_>>>()?).await?;
    let sql = format!(
        "INSERT INTO history (id, account, line, key, kind, calls, amount, request_path, created_at) \
         VALUES ({NEXT_ID}, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    );
    let entry = |change: &UsageChange<i64, i64>| {
        let UsageChange { account, line, key, kind, calls, request_path, .. } = change;
        let kind = UsageKind::ALL.iter().position(|known| known == kind).map(|number| number as i64);
        let amount = -change.added_credits().atoms();
        values![account, line, key, kind, calls, amount, request_path.as_deref(), at]
    };
    db.execute(&sql, &changes.iter().map(entry).collect::<Vec<_>>()).await?;
    let sql = "DELETE FROM history WHERE account = ?1 AND id <= ( \
               SELECT h.id FROM history h WHERE h.account = ?1 ORDER BY h.id DESC LIMIT 1 OFFSET ?2)";
    let rows: Vec<_> = changes.iter().map(|change| values![change.account, ACTIVITY_KEPT]).collect();
    db.execute(sql, &rows).await.map(drop)
}

/// An account's latest entries, usage and ledger together, newest first.
pub(crate) async fn newest(db: &mut dyn Executor, id: &AccountId, limit: u32) -> Result<Vec<Activity>> {
    let Some((account, _)) = accounts::by_id(db, id).await? else { return Ok(Vec::new()) };
    let sql = "SELECT h.id, n.route_template, n.http_method, n.source, h.key, h.kind, h.calls, h.amount, h.request_path, \
               h.created_at FROM history h JOIN usage_line n ON n.id = h.line WHERE h.account = ?1 \
               ORDER BY h.id DESC LIMIT ?2";
    let rows = db.query(sql, &values![account, limit]).await?;
    let mut entries = rows.iter().map(entry).collect::<Result<Vec<_>>>()?;
    entries.extend(ledger::newest(db, account, limit).await?);
    entries.sort_unstable_by_key(|(number, _)| Reverse(*number));
    entries.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(entries.into_iter().map(|(_, activity)| activity).collect())
}

fn entry(row: &Row) -> Result<(i64, Activity)> {
    let (number, kind): (i64, u8) = (row.get(0)?, row.get(5)?);
    let unknown = || StoreError::Corrupt(format!("{kind} is not a kind of usage"));
    let activity = Activity {
        id: format!("act_{number}"),
        kind: UsageKind::ALL.get(usize::from(kind)).copied().ok_or_else(unknown)?.into(),
        amount: row.get(7)?,
        description: None,
        line: Some(usage_lines::read(row, 1)?),
        request_path: row.get::<Option<String>>(8)?.map(Into::into),
        calls: row.get(6)?,
        payment: None,
        key: Some(row.get(4)?),
        created_at: row.get(9)?,
    };
    Ok((number, activity))
}
