//! Recurring credits: the rule, and refilling accounts by it.

use metering_core::backend::decision::{RefillChanges, RefillProgress, is_refill_due, refill_account};
use metering_core::backend::one_more_than;
use metering_core::money::Refill;
use metering_core::store::Refilled;
use metering_core::{Account, Day, Timestamp};
use tokio_postgres::Row;

use crate::access::accounts;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::money::ledger;
use crate::rows::{amount, execute, first, parsed};
use crate::transactions::serialized::SerializedWrite;

/// The columns that [`refill`] reads.
pub(crate) const COLUMNS: &str = "credits, every, cap";

/// The rule, and how far it is.
pub(crate) async fn rule<C: GenericClient>(client: &C) -> Result<Option<(Refill, Option<RefillProgress>)>> {
    let sql = format!("SELECT {COLUMNS}, period, after FROM refill");
    let Some(row) = first(client, &sql, &[]).await? else { return Ok(None) };
    let (period, after) = (row.try_get::<_, Option<i64>>(3)?, row.try_get(4)?);
    let progress = period.map(|period| RefillProgress { period: Day::from_unix_days(period), after });
    Ok(Some((refill(&row)?, progress)))
}

/// Reads a rule.
pub(crate) fn refill(row: &Row) -> Result<Refill> {
    Ok(Refill { credits: amount(row, 0)?, every: parsed(row, 1)?, cap: amount(row, 2)? })
}

/// Replaces the rule.
pub(crate) async fn set(write: &SerializedWrite<'_>, refill: Option<Refill>) -> Result<()> {
    execute(write.client(), "DELETE FROM refill", &[]).await?;
    let Some(Refill { credits, every, cap }) = refill else { return Ok(()) };
    let sql = "INSERT INTO refill (id, credits, every, cap) VALUES (1, $1, $2, $3)";
    execute(write.client(), sql, &[&credits.atoms(), &every.as_str(), &cap.atoms()]).await.map(drop)
}

/// Whether accounts are still to be processed at `now`. Usually not, and finding out takes no lock.
pub(crate) async fn is_open<C: GenericClient>(client: &C, now: Timestamp) -> Result<bool> {
    let is_open = |(refill, progress): (Refill, _)| RefillProgress::position(progress, refill.period(now.day()));
    Ok(rule(client).await?.and_then(is_open).is_some())
}

/// Processes the next `limit` accounts, in a few statements for all of them.
pub(crate) async fn refill_accounts(write: &SerializedWrite<'_>, now: Timestamp, limit: u32) -> Result<Refilled> {
    let (client, mut refilled) = (write.client(), Refilled::NOTHING);
    let Some((refill, progress)) = rule(client).await? else { return Ok(refilled) };
    let period = refill.period(now.day());
    let Some(after) = RefillProgress::position(progress, period) else { return Ok(refilled) };
    let mut rows = accounts::turns_after(client, after, one_more_than(limit)).await?;
    let progress = RefillProgress::after_page(period, &mut rows, limit);
    let is_due = |account: &Account, refilled_on| is_refill_due(account, refilled_on, period);
    // Charges change neither whether an account is due nor its turn, but its totals: those are read under the lock.
    let due = rows.iter().filter(|(_, (account, refilled_on))| is_due(account, *refilled_on)).map(|(row, _)| *row);
    let due = accounts::all_locked(client, &due.collect::<Vec<_>>()).await?;
    let changes = due.into_iter().map(|(row, account)| refill_account(row, account, &refill, now));
    write_turns(write, changes.collect(), &mut refilled).await?;
    let sql = "UPDATE refill SET period = $1, after = $2";
    execute(client, sql, &[&period.unix_days(), &progress.after]).await?;
    refilled.is_done = progress.after.is_none();
    Ok(refilled)
}

async fn write_turns(
    write: &SerializedWrite<'_>,
    changes: Vec<RefillChanges<i64>>,
    refilled: &mut Refilled,
) -> Result<()> {
    let rows: Vec<i64> = changes.iter().map(|changes| changes.row).collect();
    let days: Vec<i64> = changes.iter().map(|changes| changes.refilled_on.unix_days()).collect();
    let sql = "UPDATE account a SET refilled_on = new.day FROM unnest($1::BIGINT[], $2::BIGINT[]) AS new (row, day) \
               WHERE a.id = new.row";
    if !rows.is_empty() {
        execute(write.client(), sql, &[&rows, &days]).await?;
    }
    let entries: Vec<_> = changes.into_iter().filter_map(|changes| changes.entry).collect();
    for entry in &entries {
        refilled.add(entry.entry.amount);
    }
    ledger::write_all(write.client(), &entries).await
}
