use metering_core::store::SourceId;
use metering_sql::transfer::{self, TargetState};

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{bytes, exists, first};
use crate::statements::dialect;

/// All tables with a store's data, except those that any server writes to that starts on the database.
pub(super) fn tables() -> Vec<String> {
    transfer::tables().into_iter().filter(|table| *table != "recipient").map(dialect).collect()
}

pub(super) async fn of<C: GenericClient>(client: &C, source: SourceId) -> Result<TargetState> {
    if let Some(row) = first(client, "SELECT source, finished_at FROM import WHERE id = 1", &[]).await? {
        if row.try_get::<_, Option<i64>>(1)?.is_none() {
            return Ok(TargetState::Unfinished);
        }
        if SourceId::from_bytes(bytes(&row, 0)?) == source {
            return Ok(TargetState::Finished);
        }
        return Ok(TargetState::Occupied("another store was moved there".to_owned()));
    }
    for table in &tables() {
        // A schema of an earlier version does not have the later tables.
        let is_there = exists(client, "SELECT 1 WHERE to_regclass($1) IS NOT NULL", &[&table.as_str()]).await?;
        // Any server that starts on the database sets the operator's own webhook, and records its catalogue.
        let of_store = match table.as_str() {
            "webhook" => "WHERE account IS NOT NULL",
            "price_version" => "WHERE applied_by IS NOT NULL",
            _ => "",
        };
        if is_there && exists(client, &format!("SELECT 1 FROM {table} {of_store} LIMIT 1"), &[]).await? {
            return Ok(TargetState::Occupied(format!("its table {table} has rows")));
        }
    }
    Ok(TargetState::Empty)
}
