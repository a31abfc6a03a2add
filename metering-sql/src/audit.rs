//! The audit log. Triggers in the schema make its tables append-only.

use metering_core::operators::{AuditEntry, AuditId, AuditOutcome, AuditQuery, NewAuditEntry};

use crate::conditions::Conditions;
use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{self, Record};
use crate::row::{Reader, Row, only};
use crate::table::Column::Own;
use crate::table::Table;
use crate::value::{ToValue, Value};
use crate::values;

/// An entry, without its outcome.
impl Record for (AuditId, NewAuditEntry) {
    const TABLE: Table = Table {
        name: "audit_entry",
        key: &["id"],
        columns: &[
            Own("id"),
            Own("at"),
            Own("actor"),
            Own("action"),
            Own("subject"),
            Own("reason"),
            Own("request"),
            Own("before"),
        ],
    };

    fn values(&self) -> Result<Vec<Value>> {
        let (id, entry) = self;
        Ok(entry_values(id, entry))
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (id, at, actor, action, subject) = (row.next()?, row.next()?, row.next()?, row.next()?, row.next()?);
        let (reason, request, before) = (row.next()?, row.next()?, row.next()?);
        Ok((id, NewAuditEntry { at, actor, action, subject, reason, request, before }))
    }
}

fn entry_values(id: impl ToValue, entry: &NewAuditEntry) -> Vec<Value> {
    let NewAuditEntry { at, actor, action, subject, reason, request, before } = entry;
    values![id, at, actor, action, subject, reason, request, before]
}

/// The outcome of the entry with this id.
impl Record for (AuditId, AuditOutcome) {
    const TABLE: Table = Table {
        name: "audit_outcome",
        key: &["entry"],
        columns: &[Own("entry"), Own("at"), Own("result"), Own("detail"), Own("after")],
    };

    fn values(&self) -> Result<Vec<Value>> {
        let (id, AuditOutcome { at, result, detail, after }) = self;
        Ok(values![id, at, result, detail, after])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (id, at, result) = (row.next()?, row.next()?, row.next()?);
        Ok((id, AuditOutcome { at, result, detail: row.next()?, after: row.next()? }))
    }
}

const ENTRY: Table = <(AuditId, NewAuditEntry)>::TABLE;
const OUTCOME: Table = <(AuditId, AuditOutcome)>::TABLE;

/// Entries with their outcomes.
pub const TABLES: &str = "audit_entry LEFT JOIN audit_outcome ON audit_outcome.entry = audit_entry.id";

/// The columns that [`read`] reads from [`TABLES`].
#[must_use]
pub fn columns() -> String {
    format!("{}, {}", ENTRY.column_list(), OUTCOME.column_list())
}

/// Reads an entry and its outcome.
pub fn read(row: &Row) -> Result<AuditEntry> {
    let (id, entry) = Record::of_row(row)?;
    let first = ENTRY.columns.len();
    let has_ended = row.get::<Option<i64>>(first)?.is_some();
    let outcome = has_ended.then(|| <(AuditId, AuditOutcome)>::of_row_at(row, first)).transpose()?;
    Ok(AuditEntry { id, entry, outcome: outcome.map(|(_, outcome)| outcome) })
}

/// Writes an entry with its outcome.
pub async fn log(db: &mut dyn Executor, entry: &NewAuditEntry, outcome: &AuditOutcome) -> Result<AuditId> {
    let id = db.next_ids(1).await?.into_iter().next().flatten();
    let rows = db.query(&format!("{} RETURNING id", ENTRY.insert()), &entry_values(id, entry)).await?;
    let id = only(&rows)?.get(0)?;
    record::insert(db, &[(id, outcome.clone())]).await?;
    Ok(id)
}

/// Entries, newest first, at most `limit`.
pub async fn list(db: &mut dyn Executor, query: &AuditQuery, limit: u32) -> Result<Vec<AuditEntry>> {
    let AuditQuery { subject, before, action, at } = query;
    let mut conditions = Conditions::new("id < ?1", values![before.map_or(i64::MAX, |id| id.0), limit]);
    conditions.equals("subject", subject.as_ref());
    conditions.equals("action", action.as_ref());
    conditions.within("audit_entry.at", *at);
    let sql = format!("SELECT {} FROM {TABLES} WHERE {} ORDER BY id DESC LIMIT ?2", columns(), conditions.sql());
    db.query(&sql, conditions.values()).await?.iter().map(read).collect()
}
