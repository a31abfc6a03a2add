//! Lines: the deliveries of one account's events to one webhook, which are sent one at a time in the order of events.
//!
//! The first pending delivery of a line is its head. `delivery.is_head` marks the heads, so that those that are due are
//! found in an index of heads only. A line of a customer's webhook has a mark only while the webhook is active. The
//! operator's lines, one per account, keep theirs while their webhook is switched off: queries for due deliveries check
//! its state first.
//!
//! Events are inserted while the meter of their account is locked, and become heads if nothing before them is pending.
//! Every transaction that moves a mark takes the same lock, so neither misses the other's changes.

use metering_core::Timestamp;

use crate::executor::Executor;
use crate::fault::Result;
use crate::progress;
use crate::record::find;
use crate::row::Row;
use crate::transfer::DeliveryRecord;
use crate::value::Value;
use crate::values;

/// The row number of the operator's webhook.
pub const OPERATOR: i64 = 0;

/// The first pending delivery of the line `?1`, `?2`. In the order of the index of pending deliveries, and with a
/// limit: an index seek, regardless of PostgreSQL's statistics.
const FIRST: &str = "SELECT p.id FROM delivery p WHERE p.state = 'pending' AND p.webhook = ?1 AND p.account {is} ?2 \
     ORDER BY p.webhook, p.account, p.event, p.id LIMIT 1";

/// A line, by the row numbers of its webhook and of its account, as the table has them. A customer's webhook has one
/// line; the operator's has one per account, and one for its own tests, which have no account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    pub(crate) webhook: i64,
    pub(crate) account: Option<i64>,
}

impl Line {
    /// Reads a line from two columns, which start at `first`.
    pub(crate) fn read(row: &Row, first: usize) -> Result<Self> {
        Ok(Self { webhook: row.get(first)?, account: row.get(first + 1)? })
    }

    fn values(self) -> Vec<Value> {
        values![self.webhook, self.account]
    }
}

/// Locks the meters of the accounts of these lines, in the order in which charges lock them. Tests of the operator's
/// webhook have no account, and need no lock: charges do not write any.
pub(crate) async fn lock(db: &mut dyn Executor, lines: &[Line]) -> Result<()> {
    let accounts: Vec<i64> = lines.iter().filter_map(|line| line.account).collect();
    if accounts.is_empty() {
        return Ok(());
    }
    lock_meters(db, &accounts).await
}

/// Locks the meters of the accounts with these row numbers.
pub(crate) async fn lock_meters(db: &mut dyn Executor, accounts: &[i64]) -> Result<()> {
    let sql = "SELECT m.account FROM meter m WHERE m.account {in ?1} ORDER BY m.account {lock m}";
    db.query(sql, &values![accounts]).await.map(drop)
}

/// The lines of which one of the events in the list `?1` is the head. They are the same once they are locked: charges
/// mark only what they write, and remove no mark.
pub(crate) async fn of_heads(db: &mut dyn Executor, events: &[Value]) -> Result<Vec<Line>> {
    of_deliveries(db, "event {in ?1} AND is_head", events).await
}

async fn of_deliveries(db: &mut dyn Executor, condition: &str, values: &[Value]) -> Result<Vec<Line>> {
    let sql = format!("SELECT webhook, account FROM delivery WHERE {condition}");
    db.query(&sql, values).await?.iter().map(|row| Line::read(row, 0)).collect()
}

/// Marks the heads of lines that have none, unless their webhook is switched off. The lines are locked.
pub(crate) async fn mark(db: &mut dyn Executor, lines: &[Line]) -> Result<()> {
    let rows: Vec<_> = lines.iter().map(|line| line.values()).collect();
    db.execute(&marking(), &rows).await.map(drop)
}

/// Removes the mark of a line, before its head or the state of its webhook changes. The line is locked.
pub(crate) async fn unmark(db: &mut dyn Executor, line: Line) -> Result<()> {
    db.execute(&unmarking(), &[line.values()]).await.map(drop)
}

/// Makes the head of a line due now, because its webhook may have been repaired.
pub(crate) async fn hasten(db: &mut dyn Executor, line: Line, now: Timestamp) -> Result<()> {
    let found: Option<DeliveryRecord> = find(db, &format!("WHERE delivery.id = ({FIRST})"), &line.values()).await?;
    let Some(delivery) = found else { return Ok(()) };
    progress::write(db, delivery.id, &delivery.progress.hastened(now)).await
}

/// Marks the heads of all lines of the operator's webhook: a deletion that was cut short may have deleted some.
pub(crate) async fn mark_operators(db: &mut dyn Executor) -> Result<()> {
    let lines = of_deliveries(db, "webhook = 0 AND state = 'pending' GROUP BY webhook, account", &[]).await?;
    lock(db, &lines).await?;
    mark(db, &lines).await
}

/// The statement that marks the head of a line.
#[must_use]
pub fn marking() -> String {
    format!(
        "UPDATE delivery SET is_head = TRUE WHERE NOT is_head AND id = ({FIRST}) \
         AND EXISTS (SELECT 1 FROM webhook w WHERE w.id = ?1 AND (w.state = 'active' OR w.id = 0))"
    )
}

/// The statement that removes the mark of a line.
#[must_use]
pub fn unmarking() -> String {
    format!("UPDATE delivery SET is_head = FALSE WHERE is_head AND id = ({FIRST})")
}
