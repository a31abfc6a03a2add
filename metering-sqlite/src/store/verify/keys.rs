//! Checks that no budget lacks what its key and the keys below it used.

use std::collections::HashMap;

use metering_core::Day;
use metering_core::access::{Key, KeyNumber, Spent};
use metering_core::backend::{credits, restarted_budget};
use metering_core::store::Discrepancy;
use rusqlite::Connection;

use crate::access::key_tree::KeyTree;
use crate::access::keys::{KEY_COLUMN_COUNT, KEY_COLUMNS, METER_COLUMN_COUNT, METER_COLUMNS, key, meter};
use crate::charging::holds::{self, OpenHold};
use crate::error::{Result, corrupt, store_error};
use crate::journal::Snapshot;
use crate::rows::{all, parse};

/// A key with a budget, what counts against the budget, and the atoms that its usage and its open holds add up to.
struct Budgeted {
    key: Key,
    spent: Spent,
    computed: i128,
}

/// The keys of an account that has budgets.
struct Account {
    tree: KeyTree,
    budgeted: Vec<Budgeted>,
}

impl Account {
    /// Adds a part of a daily total, or an open hold, to every budget that it counts against.
    fn add(&mut self, day: Day, used: KeyNumber, atoms: i128) {
        for Budgeted { key, spent, computed } in &mut self.budgeted {
            if day >= spent.since && self.tree.chain(used).any(|above| above == key.number) {
                *computed += atoms;
            }
        }
    }
}

/// Every wrong budget, by the row number of its account. Reads the daily totals once.
pub(super) fn discrepancies(snapshot: &Snapshot<'_>) -> Result<HashMap<i64, Vec<Discrepancy>>> {
    let mut accounts = accounts(snapshot)?;
    if accounts.is_empty() {
        return Ok(HashMap::new());
    }
    add_folded(snapshot, &mut accounts)?;
    for (row, OpenHold { day, key, atoms }) in holds::open(snapshot)? {
        if let Some(account) = accounts.get_mut(&row) {
            account.add(day, key, atoms.into());
        }
    }
    let unfolded = snapshot.unfolded()?;
    for (row, account) in &mut accounts {
        for (day, usage) in unfolded.usage_of(*row) {
            account.add(day, usage.key, usage.added_atoms().into());
        }
    }
    let wrong = |(row, account): (i64, Account)| {
        let checked = account.budgeted.into_iter().map(|budgeted| {
            let Budgeted { key, spent, computed } = budgeted;
            Ok(restarted_budget(&key, spent, credits(computed)?))
        });
        let found = checked.collect::<Result<Vec<_>>>()?;
        Ok((row, found.into_iter().flatten().collect()))
    };
    accounts.into_iter().map(wrong).collect()
}

fn accounts(connection: &Connection) -> Result<HashMap<i64, Account>> {
    let sql = format!(
        "SELECT {KEY_COLUMNS}, {METER_COLUMNS}, a.id, a.org_id FROM api_key k JOIN account a ON a.id = k.account \
         JOIN key_meter m ON m.account = k.account AND m.key = k.number \
         WHERE k.budget_limit IS NOT NULL ORDER BY k.account, k.number"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let after = KEY_COLUMN_COUNT + METER_COLUMN_COUNT;
    let budgeted = all(&mut statement, [], |row| {
        let (account, meter): (i64, _) = (row.get(after)?, meter(row, KEY_COLUMN_COUNT)?);
        let id = match parse(&row.get::<_, String>(after + 1)?) {
            Ok(id) => id,
            Err(error) => return Ok(Err(error)),
        };
        let key = key(row, 0, &id)?;
        let counted = || {
            let meter = meter?.ok_or_else(|| corrupt(format_args!("a budget of account {id} has no meter")))?;
            Ok((account, Budgeted { key: key?, spent: meter.spent, computed: 0 }))
        };
        Ok(counted())
    })?;
    let mut accounts: HashMap<i64, Account> = HashMap::new();
    for (row, budgeted) in budgeted {
        let account = match accounts.entry(row) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(Account { tree: KeyTree::of(connection, row)?, budgeted: Vec::new() })
            }
        };
        account.budgeted.push(budgeted);
    }
    Ok(accounts)
}

fn add_folded(connection: &Connection, accounts: &mut HashMap<i64, Account>) -> Result<()> {
    let mut statement =
        connection.prepare_cached("SELECT day, account, key, amount FROM usage_daily").map_err(store_error)?;
    let mut rows = statement.query([]).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        let mut add = || {
            if let Some(account) = accounts.get_mut(&row.get(1)?) {
                let (day, key) = (Day::from_unix_days(row.get(0)?), KeyNumber::new(row.get(2)?));
                account.add(day, key, row.get::<_, i64>(3)?.into());
            }
            Ok(())
        };
        add().map_err(store_error)?;
    }
    Ok(())
}
