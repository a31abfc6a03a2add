//! Plans.

use metering_core::StoreError;
use metering_core::payments::{Plan, PlanKey};

use crate::executor::Executor;
use crate::fault::{Fault, Result};
use crate::record::{Record, delete, table};
use crate::row::Reader;
use crate::table::Table;
use crate::value::Value;
use crate::{record, values};

/// `definition` is the whole plan, as JSON: nothing searches in it. The other columns are those that statements need.
impl Record for Plan {
    const TABLE: Table = table!("plan" by ["id", "chain_id"] {
        Own(definition), Own(active), Own(id), Own(chain_id), Own(sort_order)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let definition = serde_json::to_string(self).map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(values![definition, self.active, self.id, chain(self.chain_id)?, self.sort_order])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let definition: String = row.next()?;
        let plan: Self = serde_json::from_str(&definition).map_err(|error| row.corrupt(error))?;
        Ok(Self { active: row.next()?, ..plan })
    }
}

/// All plans, in display order.
pub async fn list(db: &mut dyn Executor) -> Result<Vec<Plan>> {
    record::list(db, "ORDER BY sort_order, chain_id, id {bytes}", &[]).await
}

/// Adds plans, and replaces those with the same key.
pub async fn put(db: &mut dyn Executor, plans: &[Plan]) -> Result<()> {
    record::put(db, plans).await.map(drop)
}

/// Removes a plan; `false` when none has that key.
pub async fn remove(db: &mut dyn Executor, key: &PlanKey) -> Result<bool> {
    let removed = delete::<Plan>(db, "WHERE id = ?1 AND chain_id = ?2", values![key.id, chain(key.chain_id)?]);
    Ok(removed.await? > 0)
}

/// Puts a plan on sale or takes it off sale; `false` when none has that key.
pub async fn set_active(db: &mut dyn Executor, key: &PlanKey, active: bool) -> Result<bool> {
    let values = values![key.id, chain(key.chain_id)?, active];
    Ok(record::set::<Plan>(db, &["active"], &[values]).await? > 0)
}

/// The database's integers are signed. No chain id comes close to their limit.
fn chain(id: u64) -> Result<i64> {
    let too_large = |_| Fault::Store(StoreError::Unavailable(format!("chain id {id} is too large").into()));
    i64::try_from(id).map_err(too_large)
}
