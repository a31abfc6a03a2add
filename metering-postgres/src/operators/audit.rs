//! The audit log. Triggers in the schema make its tables append-only.

use metering_core::Timestamp;
use metering_core::backend::not_under_way;
use metering_core::operators::{AuditEntry, AuditId, AuditOutcome, AuditQuery, AuditResult, NewAuditEntry};
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::rows::{Values, all, execute, parsed, timestamp};
use crate::transactions::serialized::SerializedWrite;

/// The columns that [`entry`] reads from [`TABLES`].
pub(crate) const COLUMNS: &str = "e.id, e.at, e.actor, e.action, e.subject, e.reason, e.before, o.at, o.result, \
     o.detail, o.after, e.request";
pub(crate) const TABLES: &str = "audit_entry e LEFT JOIN audit_outcome o ON o.entry = e.id";

/// Writes an entry.
pub(crate) async fn begin(write: &SerializedWrite<'_>, new: &NewAuditEntry) -> Result<AuditId> {
    let id = write.next_id().await?;
    let sql = "INSERT INTO audit_entry (id, at, actor, action, subject, reason, request, before) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let NewAuditEntry { at, actor, action, subject, reason, request, before } = new;
    let values: Values<'_> = &[&id, &at.unix_millis(), &actor.to_string(), action, subject, reason, request, before];
    execute(write.client(), sql, values).await?;
    Ok(AuditId(id))
}

/// Writes the outcome of an entry, which must exist and have none.
pub(crate) async fn end(write: &SerializedWrite<'_>, id: AuditId, outcome: &AuditOutcome) -> Result<()> {
    let sql = "INSERT INTO audit_outcome (entry, at, result, detail, after) SELECT id, $2::BIGINT, $3::TEXT, $4::TEXT, $5::TEXT \
               FROM audit_entry \
               WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM audit_outcome WHERE entry = $1)";
    let AuditOutcome { at, result, detail, after } = outcome;
    let written = execute(write.client(), sql, &[&id.0, &at.unix_millis(), &result.as_str(), detail, after]).await?;
    if written == 1 { Ok(()) } else { Err(not_under_way(id).into()) }
}

/// Entries, newest first, at most `limit`.
pub(crate) async fn list<C: GenericClient>(client: &C, query: &AuditQuery, limit: u32) -> Result<Vec<AuditEntry>> {
    let (before, limit) = (query.before.map_or(i64::MAX, |id| id.0), i64::from(limit));
    let rest = "e.id < $1 ORDER BY e.id DESC LIMIT $2";
    let rows = match &query.subject {
        None => all(client, &format!("SELECT {COLUMNS} FROM {TABLES} WHERE {rest}"), &[&before, &limit]).await?,
        Some(subject) => {
            let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE e.subject = $3 AND {rest}");
            all(client, &sql, &[&before, &limit, subject]).await?
        }
    };
    rows.iter().map(entry).collect()
}

/// Reads an entry and its outcome.
pub(crate) fn entry(row: &Row) -> Result<AuditEntry> {
    let entry = NewAuditEntry {
        at: timestamp(row, 1)?,
        actor: parsed(row, 2)?,
        action: row.try_get(3)?,
        subject: row.try_get(4)?,
        reason: row.try_get(5)?,
        request: row.try_get(11)?,
        before: row.try_get(6)?,
    };
    Ok(AuditEntry { id: AuditId(row.try_get(0)?), entry, outcome: outcome(row)? })
}

fn outcome(row: &Row) -> Result<Option<AuditOutcome>> {
    let Some(at) = row.try_get::<_, Option<i64>>(7)?.map(Timestamp::from_unix_millis) else { return Ok(None) };
    let name: &str = row.try_get(8)?;
    let unknown = || corrupt(format_args!("unknown result {name:?} of an audit entry"));
    let result = AuditResult::from_name(name).ok_or_else(unknown)?;
    Ok(Some(AuditOutcome { at, result, detail: row.try_get(9)?, after: row.try_get(10)? }))
}
