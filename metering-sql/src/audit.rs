//! The audit log. Triggers in the schema make its tables append-only.

use metering_core::Timestamp;
use metering_core::operators::{AuditEntry, AuditId, AuditOutcome, AuditQuery, NewAuditEntry};

use crate::conditions::Conditions;
use crate::executor::{Executor, WriteMode};
use crate::fault::Result;
use crate::record::{self, Record, table};
use crate::row::{Reader, Row, only};
use crate::table::Table;
use crate::value::{ToValue, Value};
use crate::values;

/// An entry, without its outcome.
impl Record for (AuditId, NewAuditEntry) {
    const TABLE: Table = table!("audit_entry" by ["id"] {
        Own(id), Own(at), Own(actor), Own(action), Own(subject), Own(reason), Own(request), Own(before)
    });

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

// The outcome of the entry with this id.
table! {
    "audit_outcome" by ["entry"] of (AuditId, AuditOutcome) {
        Own(entry), Own(at), Own(result), Own(detail), Own(after)
    } as (entry, AuditOutcome { at, result, detail, after })
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

/// The triggers let a transaction change the log while this row is there.
const OPEN: &str = "INSERT INTO audit_exception (id) VALUES (1)";
const CLOSE: &str = "DELETE FROM audit_exception";

/// Reduces the entries that name one of `names` (addresses and ids) to who did what and when, except those of the action
/// `kept`. Returns how many entries have something to remove.
pub(crate) async fn redact(db: &mut dyn Executor, names: &[String], kept: &str, mode: WriteMode) -> Result<u64> {
    let sql = format!("SELECT {} FROM {TABLES}", columns());
    let mut found: Vec<i64> = Vec::new();
    let mut note = |row: &Row| -> Result<()> {
        let AuditEntry { id, entry, outcome } = read(row)?;
        if entry.action != kept && is_to_redact(&entry, outcome.as_ref(), names) {
            found.push(id.0);
        }
        Ok(())
    };
    db.each(&sql, &[], &mut note).await?;
    let count = found.len() as u64;
    if mode == WriteMode::Write && count > 0 {
        db.execute(OPEN, &[Vec::new()]).await?;
        let sql = "UPDATE audit_entry SET reason = ?2, request = ?3, before = NULL WHERE id {in ?1}";
        db.execute(sql, &[values![found, "", NOTHING]]).await?;
        db.execute("UPDATE audit_outcome SET detail = ?2, after = NULL WHERE entry {in ?1}", &[values![found, ""]])
            .await?;
        db.execute(CLOSE, &[Vec::new()]).await?;
    }
    Ok(count)
}

/// The request of an entry of which nothing else is left.
const NOTHING: &str = "{}";

fn is_to_redact(entry: &NewAuditEntry, outcome: Option<&AuditOutcome>, names: &[String]) -> bool {
    let NewAuditEntry { subject, reason, request, before, .. } = entry;
    let (detail, after) = outcome.map_or(("", None), |outcome| (&*outcome.detail, outcome.after.as_deref()));
    let texts = [Some(&**reason), Some(&**request), before.as_deref(), Some(detail), after];
    let is_redacted = texts.iter().flatten().all(|text| text.is_empty() || *text == NOTHING);
    let is_named = |text: &str| {
        let text = text.to_lowercase();
        names.iter().any(|name| contains_name(&text, &name.to_lowercase()))
    };
    !is_redacted && texts.into_iter().flatten().chain([&**subject]).any(is_named)
}

/// Whether a text has a name as a whole word.
fn contains_name(text: &str, name: &str) -> bool {
    let before = |at: usize| text[..at].chars().next_back();
    let after = |at: usize| text[at + name.len()..].chars().next();
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '+' | '%');
    let begins = |char: Option<char>| !char.is_some_and(|char| is_part(char) || char == '.');
    text.match_indices(name).any(|(at, _)| begins(before(at)) && !after(at).is_some_and(is_part))
}

/// Deletes the oldest entries of `until` or earlier with their outcomes, at most `limit`, and returns how many.
pub(crate) async fn forget(db: &mut dyn Executor, until: Timestamp, limit: u64) -> Result<u64> {
    // Ids increase with time, so the oldest entries are found without an index of times.
    let rows = db.query(&format!("SELECT id, at FROM audit_entry ORDER BY id LIMIT {limit}"), &[]).await?;
    let mut old: Vec<i64> = Vec::new();
    for row in &rows {
        if row.get::<Timestamp>(1)? <= until {
            old.push(row.get(0)?);
        }
    }
    if old.is_empty() {
        return Ok(0);
    }
    db.execute(OPEN, &[Vec::new()]).await?;
    db.execute("DELETE FROM audit_outcome WHERE entry {in ?1}", &[values![old]]).await?;
    db.execute("DELETE FROM audit_entry WHERE id {in ?1}", &[values![old]]).await?;
    db.execute(CLOSE, &[Vec::new()]).await?;
    Ok(old.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::contains_name;

    #[test]
    fn a_name_is_not_a_part_of_a_longer_one() {
        // text, whether it names jo@example.com
        let table = [
            (r#"{"email":"jo@example.com"}"#, true),
            ("jo@example.com belongs to another account", true),
            ("asked by jo@example.com.", true),
            ("big.jo@example.com or jo@example.com", true),
            ("mojo@example.com", false),
            ("big.jo@example.com", false),
            ("jo@example.community", false),
            ("", false),
        ];
        for (text, expected) in table {
            assert_eq!(contains_name(text, "jo@example.com"), expected, "{text}");
        }
    }
}
