//! The audit log. Triggers in the schema make its tables append-only.

use metering_core::Timestamp;
use metering_core::backend::not_under_way;
use metering_core::operators::{AuditEntry, AuditId, AuditOutcome, AuditQuery, AuditResult, NewAuditEntry};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, corrupt, store_error};
use crate::rows::{all, parse, timestamp};

/// The columns that [`entry`] reads from [`TABLES`].
pub(crate) const COLUMNS: &str = "e.id, e.at, e.actor, e.action, e.subject, e.reason, e.before, o.at, o.result, \
     o.detail, o.after, e.request";
pub(crate) const TABLES: &str = "audit_entry e LEFT JOIN audit_outcome o ON o.entry = e.id";

/// Writes an entry.
pub(crate) fn begin(connection: &Connection, new: &NewAuditEntry) -> Result<AuditId> {
    let sql = "INSERT INTO audit_entry (at, actor, action, subject, reason, request, before) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let NewAuditEntry { at, actor, action, subject, reason, request, before } = new;
    let values = params![at.unix_millis(), actor.to_string(), action, subject, reason, request, before];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map_err(store_error)?;
    Ok(AuditId(connection.last_insert_rowid()))
}

/// Writes the outcome of an entry, which must exist and have none.
pub(crate) fn end(connection: &Connection, id: AuditId, outcome: &AuditOutcome) -> Result<()> {
    let sql = "INSERT INTO audit_outcome (entry, at, result, detail, after) SELECT id, ?2, ?3, ?4, ?5 FROM audit_entry \
               WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM audit_outcome WHERE entry = ?1)";
    let AuditOutcome { at, result, detail, after } = outcome;
    let values = params![id.0, at.unix_millis(), result.as_str(), detail, after];
    let written = connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map_err(store_error)?;
    if written == 1 { Ok(()) } else { Err(not_under_way(id)) }
}

/// Entries, newest first, at most `limit`.
pub(crate) fn list(connection: &Connection, query: &AuditQuery, limit: u32) -> Result<Vec<AuditEntry>> {
    let before = query.before.map_or(i64::MAX, |id| id.0);
    let rest = "e.id < ?1 ORDER BY e.id DESC LIMIT ?2";
    match &query.subject {
        None => {
            let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE {rest}");
            let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
            all(&mut statement, params![before, limit], entry)
        }
        Some(subject) => {
            let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE e.subject = ?3 AND {rest}");
            let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
            all(&mut statement, params![before, limit, subject], entry)
        }
    }
}

/// Reads an entry and its outcome.
pub(crate) fn entry(row: &Row<'_>) -> rusqlite::Result<Result<AuditEntry>> {
    let (id, at, actor): (_, _, String) = (AuditId(row.get(0)?), timestamp(row, 1)?, row.get(2)?);
    let (action, subject, reason, before) = (row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?);
    let request = row.get(11)?;
    let ended: Option<i64> = row.get(7)?;
    let outcome = match ended {
        Some(at) => Some((Timestamp::from_unix_millis(at), row.get::<_, String>(8)?, row.get(9)?, row.get(10)?)),
        None => None,
    };
    let read = || {
        let outcome = outcome.map(|(at, name, detail, after)| {
            let unknown = || corrupt(format_args!("unknown result {name:?} of an audit entry"));
            let result = AuditResult::from_name(&name).ok_or_else(unknown)?;
            Ok(AuditOutcome { at, result, detail, after })
        });
        let entry = NewAuditEntry { at, actor: parse(&actor)?, action, subject, reason, request, before };
        Ok(AuditEntry { id, entry, outcome: outcome.transpose()? })
    };
    Ok(read())
}
