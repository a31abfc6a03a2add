//! Recurring credits: the rule, and refilling accounts by it.

use metering_core::backend::decision::{RefillProgress, is_refill_due, refill_account};
use metering_core::backend::one_more_than;
use metering_core::money::Refill;
use metering_core::store::Refilled;
use metering_core::{Account, Credits, Day, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::access::accounts;
use crate::error::{Result, store_error};
use crate::journal::Snapshot;
use crate::money::ledger;
use crate::rows::{first, parse};

/// The columns that [`refill`] reads.
pub(crate) const COLUMNS: &str = "credits, every, cap";

/// The rule, and how far it is.
pub(crate) fn rule(connection: &Connection) -> Result<Option<(Refill, Option<RefillProgress>)>> {
    let sql = format!("SELECT {COLUMNS}, period, after FROM refill");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    first(&mut statement, [], |row| {
        let (period, after) = (row.get::<_, Option<i64>>(3)?, row.get(4)?);
        let progress = period.map(|period| RefillProgress { period: Day::from_unix_days(period), after });
        Ok(refill(row)?.map(|refill| (refill, progress)))
    })
}

/// Reads a rule.
pub(crate) fn refill(row: &Row<'_>) -> rusqlite::Result<Result<Refill>> {
    let (credits, every, cap): (_, String, _) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let (credits, cap) = (Credits::from_atoms(credits), Credits::from_atoms(cap));
    Ok(parse(&every).map(|every| Refill { credits, every, cap }))
}

/// Replaces the rule.
pub(crate) fn set(connection: &Connection, refill: Option<Refill>) -> Result<()> {
    connection.execute("DELETE FROM refill", []).map_err(store_error)?;
    let Some(Refill { credits, every, cap }) = refill else { return Ok(()) };
    let sql = "INSERT INTO refill (id, credits, every, cap) VALUES (1, ?1, ?2, ?3)";
    let values = params![credits.atoms(), every.as_str(), cap.atoms()];
    connection.execute(sql, values).map(drop).map_err(store_error)
}

/// Whether accounts are still to be processed at `now`. Usually not, and finding out takes no write transaction.
pub(crate) fn is_open(connection: &Connection, now: Timestamp) -> Result<bool> {
    let is_open = |(refill, progress): (Refill, _)| RefillProgress::position(progress, refill.period(now.day()));
    Ok(rule(connection)?.and_then(is_open).is_some())
}

/// Processes the next `limit` accounts.
pub(crate) fn refill_accounts(snapshot: &Snapshot<'_>, now: Timestamp, limit: u32) -> Result<Refilled> {
    let mut refilled = Refilled::NOTHING;
    let Some((refill, progress)) = rule(snapshot)? else { return Ok(refilled) };
    let period = refill.period(now.day());
    let Some(after) = RefillProgress::position(progress, period) else { return Ok(refilled) };
    let mut rows = accounts::turns_after(snapshot, after, one_more_than(limit))?;
    let progress = RefillProgress::after_page(period, &mut rows, limit);
    for (row, (account, refilled_on)) in rows {
        if is_refill_due(&account, refilled_on, period) {
            take_turn(snapshot, row, account, &refill, now, &mut refilled)?;
        }
    }
    let sql = "UPDATE refill SET period = ?1, after = ?2";
    snapshot.execute(sql, params![period.unix_days(), progress.after]).map_err(store_error)?;
    refilled.is_done = progress.after.is_none();
    Ok(refilled)
}

fn take_turn(
    snapshot: &Snapshot<'_>,
    row: i64,
    account: Account,
    refill: &Refill,
    now: Timestamp,
    refilled: &mut Refilled,
) -> Result<()> {
    let changes = refill_account(row, account, refill, now);
    let mut statement =
        snapshot.prepare_cached("UPDATE account SET refilled_on = ?2 WHERE id = ?1").map_err(store_error)?;
    statement.execute([row, changes.refilled_on.unix_days()]).map_err(store_error)?;
    if let Some(entry) = changes.entry {
        refilled.add(entry.entry.amount);
        ledger::write(snapshot, &entry)?;
    }
    Ok(())
}
