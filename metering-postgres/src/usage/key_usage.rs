//! What keys used: their daily totals, plus the usage that is still in the account's tail.

use metering_core::Day;
use metering_core::access::KeyNumber;
use metering_sql::KeyDay;
use tokio_postgres::Row;

use crate::charging::tail::Tail;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::money::sum::{SUM, wide_sum};
use crate::rows::{Values, all, each, key_number, one, unsigned};

/// What these keys of an account used from a day on; the tail includes other keys.
pub(crate) async fn of_keys<C: GenericClient>(
    client: &C,
    account: i64,
    keys: &[KeyNumber],
    since: Day,
) -> Result<Vec<KeyDay>> {
    let numbers: Vec<i64> = keys.iter().map(|key| key.get().into()).collect();
    let sql = format!(
        "SELECT key, day, sum(calls)::BIGINT, {SUM} FROM usage_daily \
         WHERE account = $1 AND day >= $2 AND key = ANY ($3) GROUP BY key, day"
    );
    let day = |row: &Row| {
        let (key, day) = (key_number(row, 0)?, Day::from_unix_days(row.try_get(1)?));
        Ok(KeyDay { key, day, calls: unsigned(row, 2)?, atoms: wide_sum(row, 3)? })
    };
    let rows = all(client, &sql, &[&account, &since.unix_days(), &numbers]).await?;
    let mut found = rows.iter().map(day).collect::<Result<Vec<_>>>()?;
    let tail = one(client, "SELECT tail_day, tail FROM meter WHERE account = $1", &[&account]).await?;
    let tail = Tail::of_row(&tail, 0)?;
    if let Some(day) = tail.day.map(Day::from_unix_days).filter(|day| *day >= since) {
        let totals = tail.totals()?.into_iter();
        found.extend(totals.map(|((_, key), (calls, atoms))| KeyDay { key, day, calls, atoms }));
    }
    Ok(found)
}

/// What is in the tail of one account, or in the tails of all.
pub(crate) async fn in_tails<C: GenericClient>(client: &C, account: Option<i64>) -> Result<Vec<(i64, KeyDay)>> {
    let sql = "SELECT account, tail_day, tail FROM meter WHERE tail <> ''";
    let of_account = format!("{sql} AND account = $1");
    let (sql, values): (&str, Values<'_>) = match &account {
        Some(account) => (&of_account, &[account]),
        None => (sql, &[]),
    };
    let mut found = Vec::new();
    each(client, sql, values, |row| {
        let (account, tail) = (row.try_get(0)?, Tail::of_row(row, 1)?);
        let day = Day::from_unix_days(tail.day.unwrap_or_default());
        let totals = tail.totals()?.into_iter();
        found.extend(totals.map(|((_, key), (calls, atoms))| (account, KeyDay { key, day, calls, atoms })));
        Ok(())
    })
    .await?;
    Ok(found)
}
