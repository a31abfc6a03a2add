//! Verifies that what counts against the budgets of keys is not less than what the keys were used for and hold.

use std::collections::HashMap;

use metering_core::access::{Key, KeyNumber, Spent};
use metering_core::backend::{credits, restarted_budget};
use metering_core::store::Discrepancy;

use crate::access::keys::{KEY_COLUMNS, KEY_WIDTH, Lineage, key};
use crate::charging::tail::Tail;
use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::money::sum::{SUM, wide_sum};
use crate::rows::{KEY_METER_COLUMNS, all, each, key_number, optional_key_meter, parsed, timestamp};

/// Accounts that have a key with a budget.
const WITH_BUDGETS: &str = "(SELECT account FROM api_key WHERE budget IS NOT NULL)";

/// A key with a budget, what counts against it, and the atoms that it was used for in the same period, and holds.
struct Budgeted {
    key: Key,
    spent: Spent,
    atoms: i128,
}

/// The keys with budgets, and who is above whom.
#[derive(Default)]
struct Budgets {
    keys: HashMap<(i64, KeyNumber), Budgeted>,
    lineages: HashMap<i64, Lineage>,
}

impl Budgets {
    /// Adds usage to the key that it came with, and to all keys above it.
    fn add(&mut self, account: i64, key: KeyNumber, day: i64, atoms: i128) {
        let Some(lineage) = self.lineages.get(&account) else { return };
        for above in lineage.chain(key) {
            let budgeted = self.keys.get_mut(&(account, above));
            if let Some(budgeted) = budgeted.filter(|budgeted| budgeted.spent.since.unix_days() <= day) {
                budgeted.atoms += atoms;
            }
        }
    }
}

/// Every budget that counts less than its key and the keys below it were used for.
pub(super) async fn discrepancies<C: GenericClient>(client: &C) -> Result<Vec<Discrepancy>> {
    let mut budgets = budgets(client).await?;
    if budgets.keys.is_empty() {
        return Ok(Vec::new());
    }
    let usage = format!(
        "SELECT account, key, day, {SUM} FROM usage_daily WHERE account IN {WITH_BUDGETS} GROUP BY account, key, day"
    );
    each(client, &usage, &[], |row| {
        budgets.add(row.try_get(0)?, key_number(row, 1)?, row.try_get(2)?, wide_sum(row, 3)?);
        Ok(())
    })
    .await?;
    let tails = format!("SELECT account, tail_day, tail FROM meter WHERE tail <> '' AND account IN {WITH_BUDGETS}");
    each(client, &tails, &[], |row| {
        let (account, tail) = (row.try_get(0)?, Tail::of_row(row, 1)?);
        for ((_, key), (_, atoms)) in tail.totals()? {
            budgets.add(account, key, tail.day.unwrap_or_default(), atoms);
        }
        Ok(())
    })
    .await?;
    let holds = format!(
        "SELECT account, key, created_at, amount FROM hold WHERE settled_at IS NULL AND account IN {WITH_BUDGETS}"
    );
    each(client, &holds, &[], |row| {
        let (day, atoms) = (timestamp(row, 2)?.day().unix_days(), row.try_get::<_, i64>(3)?);
        budgets.add(row.try_get(0)?, key_number(row, 1)?, day, atoms.into());
        Ok(())
    })
    .await?;
    let mut keys: Vec<_> = budgets.keys.into_iter().collect();
    keys.sort_unstable_by_key(|(place, _)| *place);
    let mut found = Vec::new();
    for (_, Budgeted { key, spent, atoms }) in keys {
        found.extend(restarted_budget(&key, spent, credits(atoms)?));
    }
    Ok(found)
}

async fn budgets<C: GenericClient>(client: &C) -> Result<Budgets> {
    let sql = format!(
        "SELECT a.org_id, {KEY_COLUMNS}, {KEY_METER_COLUMNS} FROM api_key k JOIN account a ON a.id = k.account \
         LEFT JOIN key_meter c ON c.account = k.account AND c.key = k.number WHERE k.budget IS NOT NULL"
    );
    let mut budgets = Budgets::default();
    for row in all(client, &sql, &[]).await? {
        let key = key(&row, 1, &parsed(&row, 0)?)?;
        let Some(meter) = optional_key_meter(&row, 1 + KEY_WIDTH)? else {
            return Err(corrupt(format_args!("key {} of {} has a budget and no meter", key.id, key.account)));
        };
        budgets.keys.insert((row.try_get(1)?, key.number), Budgeted { key, spent: meter.spent, atoms: 0 });
    }
    let keys = format!("SELECT k.account, k.number, k.parent FROM api_key k WHERE k.account IN {WITH_BUDGETS}");
    for row in all(client, &keys, &[]).await? {
        let parent = row.try_get::<_, Option<i64>>(2)?.map(|_| key_number(&row, 2)).transpose()?;
        budgets.lineages.entry(row.try_get(0)?).or_default().add(key_number(&row, 1)?, parent, true);
    }
    Ok(budgets)
}
