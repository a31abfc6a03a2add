use metering_core::StoreError;
use metering_core::payments::{Plan, PlanKey};

use crate::connection::session::GenericClient;
use crate::error::{Failure, Result, corrupt};
use crate::rows::{all, execute};
use crate::transactions::serialized::SerializedWrite;

/// All plans, in display order. `"C"` compares bytes, as every other backend does.
pub(crate) async fn list<C: GenericClient>(client: &C) -> Result<Vec<Plan>> {
    let sql = "SELECT definition, active FROM plan ORDER BY sort_order, chain_id, id COLLATE \"C\"";
    let rows = all(client, sql, &[]).await?;
    rows.iter().map(plan).collect()
}

/// Reads a plan from its definition and whether it is on sale.
pub(crate) fn plan(row: &tokio_postgres::Row) -> Result<Plan> {
    let plan: Plan = serde_json::from_str(row.try_get(0)?).map_err(|error| corrupt(format_args!("plan: {error}")))?;
    Ok(Plan { active: row.try_get(1)?, ..plan })
}

/// Adds plans, and replaces those with the same key.
pub(crate) async fn put(write: &SerializedWrite<'_>, plans: &[Plan]) -> Result<()> {
    let sql = "INSERT INTO plan (id, chain_id, sort_order, active, definition) VALUES ($1, $2, $3, $4, $5) \
               ON CONFLICT (id, chain_id) DO UPDATE \
               SET sort_order = excluded.sort_order, active = excluded.active, definition = excluded.definition";
    for plan in plans {
        let definition = serde_json::to_string(plan);
        let definition = definition.map_err(|error| Failure::Store(StoreError::Unavailable(Box::new(error))))?;
        let (chain_id, order) = (chain(plan.chain_id)?, i64::from(plan.sort_order));
        execute(write.client(), sql, &[&plan.id, &chain_id, &order, &plan.active, &definition]).await?;
    }
    Ok(())
}

pub(crate) async fn remove(write: &SerializedWrite<'_>, key: &PlanKey) -> Result<bool> {
    let sql = "DELETE FROM plan WHERE id = $1 AND chain_id = $2";
    Ok(execute(write.client(), sql, &[&key.id, &chain(key.chain_id)?]).await? > 0)
}

pub(crate) async fn set_active(write: &SerializedWrite<'_>, key: &PlanKey, active: bool) -> Result<bool> {
    let sql = "UPDATE plan SET active = $3 WHERE id = $1 AND chain_id = $2";
    Ok(execute(write.client(), sql, &[&key.id, &chain(key.chain_id)?, &active]).await? > 0)
}

/// The database's integers are signed. No chain id comes close to their limit.
fn chain(id: u64) -> Result<i64> {
    let too_large = |_| Failure::Store(StoreError::Unavailable(format!("chain id {id} is too large").into()));
    i64::try_from(id).map_err(too_large)
}
