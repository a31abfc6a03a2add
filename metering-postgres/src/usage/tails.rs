//! Usage that is still in the tails of accounts.

use metering_core::Day;
use metering_sql::UsagePart;
use tokio_postgres::Row;

use crate::charging::tail::Tail;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{Values, each};

/// The contents of the tail of one account, or of all tails.
pub(crate) async fn of<C: GenericClient>(client: &C, account: Option<i64>) -> Result<Vec<(i64, UsagePart)>> {
    match &account {
        Some(account) => read(client, "AND account = $1", &[account]).await,
        None => read(client, "", &[]).await,
    }
}

/// The contents of the first tails from a given one on, by day and account, until a day.
pub(crate) async fn first<C: GenericClient>(
    client: &C,
    (day, account): (Day, i64),
    last: Day,
    count: i64,
) -> Result<Vec<(i64, UsagePart)>> {
    let rest = "AND (tail_day, account) >= ($1, $2) AND tail_day <= $3 ORDER BY tail_day, account LIMIT $4";
    read(client, rest, &[&day.unix_days(), &account, &last.unix_days(), &count]).await
}

async fn read<C: GenericClient>(client: &C, rest: &str, values: Values<'_>) -> Result<Vec<(i64, UsagePart)>> {
    let sql = format!("SELECT account, tail_day, tail FROM meter WHERE tail <> '' {rest}");
    let mut found = Vec::new();
    each(client, &sql, values, |row| {
        found.extend(parts(row)?);
        Ok(())
    })
    .await?;
    Ok(found)
}

fn parts(row: &Row) -> Result<Vec<(i64, UsagePart)>> {
    let (account, tail) = (row.try_get(0)?, Tail::of_row(row, 1)?);
    let day = Day::from_unix_days(tail.day.unwrap_or_default());
    let totals = tail.totals()?.into_iter();
    let part = |((line, key), (calls, atoms))| (account, UsagePart { day, line, key, calls, atoms });
    Ok(totals.map(part).collect())
}
