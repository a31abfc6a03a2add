use metering_core::StoreError;
use metering_core::payments::{Plan, PlanKey};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, corrupt, store_error};
use crate::rows::all;

/// All plans, in display order.
pub(crate) fn list(connection: &Connection) -> Result<Vec<Plan>> {
    let sql = "SELECT definition, active FROM plan ORDER BY sort_order, chain_id, id";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    all(&mut statement, [], plan)
}

/// Reads a plan from its definition and whether it is on sale.
pub(crate) fn plan(row: &Row<'_>) -> rusqlite::Result<Result<Plan>> {
    let definition: String = row.get(0)?;
    let active = row.get(1)?;
    let plan = serde_json::from_str(&definition).map(|plan| Plan { active, ..plan });
    Ok(plan.map_err(|error| corrupt(format_args!("plan: {error}"))))
}

/// Adds plans, and replaces those with the same key.
pub(crate) fn put(connection: &Connection, plans: &[Plan]) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO plan (id, chain_id, sort_order, active, definition) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    for plan in plans {
        let definition = serde_json::to_string(plan).map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        let values = params![plan.id, chain(plan.chain_id)?, plan.sort_order, plan.active, definition];
        statement.execute(values).map_err(store_error)?;
    }
    Ok(())
}

pub(crate) fn remove(connection: &Connection, key: &PlanKey) -> Result<bool> {
    let sql = "DELETE FROM plan WHERE id = ?1 AND chain_id = ?2";
    let removed = connection.execute(sql, params![key.id, chain(key.chain_id)?]).map_err(store_error)?;
    Ok(removed > 0)
}

pub(crate) fn set_active(connection: &Connection, key: &PlanKey, active: bool) -> Result<bool> {
    let sql = "UPDATE plan SET active = ?3 WHERE id = ?1 AND chain_id = ?2";
    let changed = connection.execute(sql, params![key.id, chain(key.chain_id)?, active]).map_err(store_error)?;
    Ok(changed > 0)
}

/// SQLite's integers are signed. No chain id comes close to their limit.
fn chain(id: u64) -> Result<i64> {
    i64::try_from(id).map_err(|_| StoreError::Unavailable(format!("chain id {id} is too large").into()))
}
