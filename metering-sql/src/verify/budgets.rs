//! Verifies that the usage counted towards budgets of keys is at least the usage and holds of the keys.

use std::collections::{BTreeMap, HashMap};

use metering_core::access::{Key, KeyNumber, Spent};
use metering_core::backend::{credits, restarted_budget};
use metering_core::store::Discrepancy;
use metering_core::{Day, Timestamp};

use crate::executor::{Executor, UsagePart};
use crate::fault::{Result, corrupt};
use crate::keys::{self, COLUMN_COUNT};
use crate::lineage::Lineage;
use crate::row::Row;
use crate::sum::{SUM, wide_sum};

/// Accounts that have a key with a budget.
const WITH_BUDGETS: &str = "(SELECT account FROM api_key WHERE {budget} IS NOT NULL)";

/// A key with a budget, what counts against it, and the atoms that it was used for in the same period, and holds.
struct Budgeted {
    key: Key,
    spent: Spent,
    atoms: i128,
}

/// The keys with budgets, and the keys of their accounts.
struct Budgets {
    keys: BTreeMap<(i64, KeyNumber), Budgeted>,
    lineages: HashMap<i64, Lineage>,
}

impl Budgets {
    /// Adds usage to the key that it came with, and to all its parents.
    fn add(&mut self, account: i64, key: KeyNumber, day: Day, atoms: i128) {
        let Some(lineage) = self.lineages.get(&account) else { return };
        for above in lineage.chain(key) {
            let budgeted = self.keys.get_mut(&(account, above));
            if let Some(budgeted) = budgeted.filter(|budgeted| budgeted.spent.since <= day) {
                budgeted.atoms += atoms;
            }
        }
    }
}

/// Every budget that counts less than its key and the child keys were used for, in the order of accounts and keys.
pub(super) async fn discrepancies(db: &mut dyn Executor) -> Result<Vec<Discrepancy>> {
    let mut budgets = budgets(db).await?;
    if budgets.keys.is_empty() {
        return Ok(Vec::new());
    }
    let usage = format!(
        "SELECT account, key, day, {SUM} FROM usage_daily WHERE account IN {WITH_BUDGETS} GROUP BY account, key, day"
    );
    let mut add = |row: &Row| {
        budgets.add(row.get(0)?, row.get(1)?, row.get(2)?, wide_sum(row, 3)?);
        Ok(())
    };
    db.each(&usage, &[], &mut add).await?;
    for (account, UsagePart { key, day, atoms, .. }) in db.unfolded_usage(None).await? {
        budgets.add(account, key, day, atoms);
    }
    let holds = format!(
        "SELECT account, key, created_at, amount FROM hold WHERE settled_at IS NULL AND account IN {WITH_BUDGETS}"
    );
    let mut add = |row: &Row| {
        let (booked_at, atoms): (Timestamp, i64) = (row.get(2)?, row.get(3)?);
        budgets.add(row.get(0)?, row.get(1)?, booked_at.day(), atoms.into());
        Ok(())
    };
    db.each(&holds, &[], &mut add).await?;
    let mut found = Vec::new();
    for Budgeted { key, spent, atoms } in budgets.keys.into_values() {
        found.extend(restarted_budget(&key, spent, credits(atoms)?));
    }
    Ok(found)
}

async fn budgets(db: &mut dyn Executor) -> Result<Budgets> {
    let lineages = Lineage::of_accounts(db, &format!("IN {WITH_BUDGETS}"), &[]).await?;
    let mut budgets = Budgets { keys: BTreeMap::new(), lineages };
    let (columns, tables) = (keys::columns(), keys::TABLES);
    let sql = format!("SELECT {columns}, api_key.account FROM {tables} WHERE api_key.{{budget}} IS NOT NULL");
    for row in db.query(&sql, &[]).await? {
        let (key, meter) = keys::metered(&row)?;
        let Some(meter) = meter else {
            return Err(corrupt(format_args!("key {} of {} has a budget and no meter", key.id, key.account)));
        };
        budgets.keys.insert((row.get(COLUMN_COUNT)?, key.number), Budgeted { key, spent: meter.spent, atoms: 0 });
    }
    Ok(budgets)
}
