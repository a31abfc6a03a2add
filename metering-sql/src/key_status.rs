//! Keys with their usage.

use std::collections::HashMap;

use metering_core::access::{KeyId, KeyNumber, KeyStatus};
use metering_core::backend::{KeyUsageSums, one_more_than, page_of_rows, row_of_cursor};
use metering_core::store::{Cursor, Page};
use metering_core::usage::KeyLabel;
use metering_core::{AccountId, Day};

use crate::executor::Executor;
use crate::fault::Result;
use crate::keys::{self, Metered};
use crate::lineage::Lineage;
use crate::row::Row;
use crate::usage::{self, KeyDay};
use crate::{accounts, values};

/// The keys of an account that are not revoked, after a cursor, at most `limit`.
pub async fn list(
    db: &mut dyn Executor,
    id: &AccountId,
    after: Option<&Cursor>,
    limit: u32,
    today: Day,
) -> Result<Page<KeyStatus>> {
    // Numbers begin at zero, and cursors after it.
    let after = row_of_cursor(after)?;
    let Some((row, _)) = accounts::by_id(db, id).await? else { return Ok(page_of_rows(Vec::new(), limit)) };
    let found = keys::unrevoked(db, row, after, one_more_than(limit)).await?;
    let statuses = statuses(db, row, found, today).await?;
    let numbered = statuses.into_iter().map(|status| (i64::from(status.key.number.get()) + 1, status));
    Ok(page_of_rows(numbered.collect(), limit))
}

/// One key of an account, revoked or not.
pub async fn one(db: &mut dyn Executor, id: &AccountId, key: &KeyId, today: Day) -> Result<Option<KeyStatus>> {
    let Some((row, _)) = accounts::by_id(db, id).await? else { return Ok(None) };
    let found = keys::by_id(db, row, key).await?;
    Ok(statuses(db, row, found.into_iter().collect(), today).await?.pop())
}

/// The names of the keys that an account has or had, by number.
pub async fn labels(db: &mut dyn Executor, account: &AccountId) -> Result<Vec<KeyLabel>> {
    let sql = "SELECT k.number, k.parent, k.{key_id}, k.name FROM account a JOIN api_key k ON k.account = a.id \
               WHERE a.org_id = ?1 ORDER BY k.number";
    let rows = db.query(sql, &values![account]).await?;
    let label =
        |row: &Row| Ok(KeyLabel { number: row.get(0)?, parent: row.get(1)?, id: row.get(2)?, name: row.get(3)? });
    rows.iter().map(label).collect()
}

/// Adds to keys of one account how far they are used up.
async fn statuses(db: &mut dyn Executor, row: i64, found: Vec<Metered>, today: Day) -> Result<Vec<KeyStatus>> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let lineage = Lineage::read(db, row).await?;
    let numbers: Vec<KeyNumber> = found.iter().map(|(key, _)| key.number).collect();
    let mut sums: HashMap<KeyNumber, KeyUsageSums> =
        numbers.iter().map(|number| (*number, KeyUsageSums::new(today))).collect();
    for KeyDay { key, day, calls, atoms } in usage::of_keys(db, row, &numbers, Day::from_unix_days(i64::MIN)).await? {
        if let Some(sums) = sums.get_mut(&key) {
            sums.add(day, calls, atoms);
        }
    }
    let status = |(key, meter): Metered| {
        Ok(KeyStatus {
            parents_are_live: lineage.parents_are_live(key.number),
            spent: key.terms.budget.and(meter).map(|meter| meter.spent),
            usage: sums.get(&key.number).map(KeyUsageSums::usage).transpose()?.unwrap_or_default(),
            key,
        })
    };
    found.into_iter().map(status).collect()
}
