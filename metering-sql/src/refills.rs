//! Recurring credits: the rule, and refilling accounts by it.

use metering_core::Timestamp;
use metering_core::backend::decision::{RefillChanges, RefillProgress, is_refill_due, refill_account};
use metering_core::backend::one_more_than;
use metering_core::money::Refill;
use metering_core::store::Refilled;

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{Record, delete, insert, set as set_columns, table};
use crate::row::{Reader, Row};
use crate::table::Table;
use crate::value::Value;
use crate::{accounts, values};

/// The id of the only row.
const ID: i64 = 1;

impl Record for Refill {
    const TABLE: Table = table!("refill" by ["id"] { Own(id), Own(credits), Own(every), Own(cap) });

    fn values(&self) -> Result<Vec<Value>> {
        let Self { credits, every, cap } = self;
        Ok(values![ID, credits, every, cap])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        row.next::<i64>()?;
        Ok(Self { credits: row.next()?, every: row.next()?, cap: row.next()? })
    }
}

/// The rule.
pub async fn rule(db: &mut dyn Executor) -> Result<Option<Refill>> {
    Ok(with_progress(db).await?.map(|(refill, _)| refill))
}

/// The rule, and how far it is.
async fn with_progress(db: &mut dyn Executor) -> Result<Option<(Refill, Option<RefillProgress>)>> {
    let sql = format!("SELECT {}, period, after FROM refill", Refill::TABLE.column_list());
    let read = |row: &Row| {
        let first = Refill::TABLE.columns.len();
        let (period, after) = (row.get::<Option<_>>(first)?, row.get(first + 1)?);
        Ok((Refill::of_row(row)?, period.map(|period| RefillProgress { period, after })))
    };
    db.query(&sql, &[]).await?.first().map(read).transpose()
}

/// Replaces the rule.
pub async fn set(db: &mut dyn Executor, refill: Option<&Refill>) -> Result<()> {
    delete::<Refill>(db, "", Vec::new()).await?;
    insert(db, refill.copied().as_slice()).await.map(drop)
}

/// Whether accounts are still to be processed at `now`. Usually not, and finding out takes no write transaction.
pub async fn is_open(db: &mut dyn Executor, now: Timestamp) -> Result<bool> {
    let is_open = |(refill, progress): (Refill, _)| RefillProgress::position(progress, refill.period(now.day()));
    Ok(with_progress(db).await?.and_then(is_open).is_some())
}

/// Processes the next `limit` accounts.
pub async fn refill_accounts(db: &mut dyn Executor, now: Timestamp, limit: u32) -> Result<Refilled> {
    let mut refilled = Refilled::NOTHING;
    let Some((refill, progress)) = with_progress(db).await? else { return Ok(refilled) };
    let period = refill.period(now.day());
    let Some(after) = RefillProgress::position(progress, period) else { return Ok(refilled) };
    let mut turns = accounts::turns_after(db, after, one_more_than(limit)).await?;
    let progress = RefillProgress::after_page(period, &mut turns, limit);
    turns.retain(|(_, (account, refilled_on))| is_refill_due(account, *refilled_on, period));
    let changes = turns.into_iter().map(|(row, (account, _))| refill_account(row, account, &refill, now));
    let changes: Vec<RefillChanges<i64>> = changes.collect();
    let days: Vec<_> = changes.iter().map(|changes| values![changes.row, changes.refilled_on]).collect();
    db.execute(&accounts::TABLE.update(&["refilled_on"]), &days).await?;
    let entries: Vec<_> = changes.into_iter().filter_map(|changes| changes.entry).collect();
    for entry in &entries {
        refilled.add(entry.entry.amount);
    }
    db.post_entries(&entries).await?;
    set_columns::<Refill>(db, &["period", "after"], &[values![ID, period, progress.after]]).await?;
    refilled.is_done = progress.after.is_none();
    Ok(refilled)
}
