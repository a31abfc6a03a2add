//! Keys with what they were used for: their daily totals, plus the usage that is still in the account's tail.

use std::collections::HashMap;

use metering_core::access::{KeyId, KeyNumber, KeyStatus, KeyUsage};
use metering_core::backend::{KeyUsageSums, one_more_than, page_of_rows, row_of_cursor};
use metering_core::store::{Cursor, Page};
use metering_core::{AccountId, Day};
use tokio_postgres::Row;

use crate::access::accounts;
use crate::access::keys::{KEY_COLUMNS, KEY_WIDTH, Lineage, key};
use crate::charging::tail::Tail;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::money::sum::{SUM, wide_sum};
use crate::rows::{KEY_METER_COLUMNS, Values, all, key_number, one, optional_key_meter, unsigned};

/// The keys of an account that are not revoked, after a cursor, at most `limit`.
pub(crate) async fn list<C: GenericClient>(
    client: &C,
    id: &AccountId,
    after: Option<&Cursor>,
    limit: u32,
    today: Day,
) -> Result<Page<KeyStatus>> {
    // Numbers begin at zero, and cursors after it.
    let after = row_of_cursor(after)?;
    let Some((row, _)) = accounts::by_id(client, id).await? else { return Ok(page_of_rows(Vec::new(), limit)) };
    let condition = "k.account = $1 AND k.number >= $2 AND k.revoked_at IS NULL ORDER BY k.number LIMIT $3";
    let keys = statuses(client, row, id, condition, &[&row, &after, &one_more_than(limit)], today).await?;
    let numbered = keys.into_iter().map(|status| (i64::from(status.key.number.get()) + 1, status));
    Ok(page_of_rows(numbered.collect(), limit))
}

/// One key of an account, revoked or not.
pub(crate) async fn one_key<C: GenericClient>(
    client: &C,
    account: &AccountId,
    id: &KeyId,
    today: Day,
) -> Result<Option<KeyStatus>> {
    let Some((row, _)) = accounts::by_id(client, account).await? else { return Ok(None) };
    let values: Values<'_> = &[&row, &id.as_str()];
    let found = statuses(client, row, account, "k.account = $1 AND k.id = $2", values, today).await?;
    Ok(found.into_iter().next())
}

async fn statuses<C: GenericClient>(
    client: &C,
    row: i64,
    account: &AccountId,
    condition: &str,
    values: Values<'_>,
    today: Day,
) -> Result<Vec<KeyStatus>> {
    let sql = format!(
        "SELECT {KEY_COLUMNS}, {KEY_METER_COLUMNS} FROM api_key k \
         LEFT JOIN key_meter c ON c.account = k.account AND c.key = k.number WHERE {condition}"
    );
    let rows = all(client, &sql, values).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let lineage = Lineage::read(client, row).await?;
    let numbers = rows.iter().map(|row| key_number(row, 1)).collect::<Result<Vec<_>>>()?;
    let mut usage = usage(client, row, &numbers, today).await?;
    let status = |row: &Row| {
        let key = key(row, 0, account)?;
        let meter = optional_key_meter(row, KEY_WIDTH)?;
        Ok(KeyStatus {
            parents_are_live: lineage.parents_are_live(key.number),
            spent: key.terms.budget.and(meter).map(|meter| meter.spent),
            usage: usage.remove(&key.number).unwrap_or_default(),
            key,
        })
    };
    rows.iter().map(status).collect()
}

/// What these keys of an account were used for.
async fn usage<C: GenericClient>(
    client: &C,
    account: i64,
    keys: &[KeyNumber],
    today: Day,
) -> Result<HashMap<KeyNumber, KeyUsage>> {
    let mut sums: HashMap<KeyNumber, KeyUsageSums> = keys.iter().map(|key| (*key, KeyUsageSums::new(today))).collect();
    let numbers: Vec<i64> = keys.iter().map(|key| key.get().into()).collect();
    let sql = format!(
        "SELECT key, day, sum(calls)::BIGINT, {SUM} FROM usage_daily WHERE account = $1 AND key = ANY($2) \
         GROUP BY key, day"
    );
    for row in all(client, &sql, &[&account, &numbers]).await? {
        if let Some(sums) = sums.get_mut(&key_number(&row, 0)?) {
            sums.add(Day::from_unix_days(row.try_get(1)?), unsigned(&row, 2)?, wide_sum(&row, 3)?);
        }
    }
    let tail = one(client, "SELECT tail_day, tail FROM meter WHERE account = $1", &[&account]).await?;
    let tail = Tail::of_row(&tail, 0)?;
    if let Some(day) = tail.day.map(Day::from_unix_days) {
        for ((_, key), (calls, atoms)) in tail.totals()? {
            if let Some(sums) = sums.get_mut(&key) {
                sums.add(day, calls, atoms);
            }
        }
    }
    sums.into_iter().map(|(key, sums)| Ok((key, sums.usage()?))).collect()
}
