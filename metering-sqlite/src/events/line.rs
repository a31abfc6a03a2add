//! Lines: the deliveries of one account's events to one webhook, which are sent one at a time in the order of events.
//!
//! The first pending delivery of a line is its head. The flag `is_head` marks the heads of active webhooks, so that the
//! index `delivery_due` has them only. Whatever changes a pending delivery, or the state of a webhook, keeps the flag
//! true with [`Line::promote`] and [`Line::demote`].

use metering_core::Timestamp;
use metering_core::events::{DeliveryId, Progress};
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::events::progress;
use crate::rows::first;

/// A line, by the row numbers of its webhook and of its account. A customer's webhook has one line, and the operator's
/// has one per account, and one of its own tests, which have no account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) webhook: i64,
    pub(crate) account: Option<i64>,
}

/// It is the head of its line if no other is pending.
const INSERT: &str = "INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at, is_head) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, EXISTS (SELECT 1 FROM webhook WHERE id = ?1 AND state = 'active') \
       AND NOT EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_line \
         WHERE webhook = ?1 AND account IS ?3 AND state = 'pending'))";

/// The first pending delivery of a line after the event `?3`.
const FIRST_PENDING: &str = "SELECT id FROM delivery INDEXED BY delivery_line \
     WHERE webhook = ?1 AND account IS ?2 AND event > ?3 AND state = 'pending' ORDER BY event LIMIT 1";

/// The first pending delivery of each line of the operator's webhook. SQLite takes the columns without an aggregate from
/// the row that has the minimum.
const OPERATORS_HEADS: &str = "SELECT id, min(event) FROM delivery INDEXED BY delivery_line \
     WHERE webhook = 0 AND state = 'pending' GROUP BY account";

/// Before every event: their numbers begin with 1.
const START: i64 = 0;

impl Line {
    /// Writes a delivery of the newest event, which waits for its first attempt.
    pub(super) fn insert(self, connection: &Connection, event: i64, now: Timestamp) -> Result<DeliveryId> {
        let Progress { state, attempts, since, next_at, last: _ } = Progress::new(now);
        let times = (since.unix_millis(), next_at.unix_millis());
        let values = params![self.webhook, event, self.account, state.as_str(), attempts, times.0, times.1];
        connection.prepare_cached(INSERT).and_then(|mut s| s.insert(values)).map(DeliveryId::new).map_err(store_error)
    }

    /// Marks the first pending delivery as the head, if the webhook is active. Call it after a change that may have
    /// removed the head or put another delivery in front of it.
    pub(super) fn promote(self, connection: &Connection) -> Result<()> {
        self.update(connection, &promotion(), START)
    }

    /// Removes the mark from the first pending delivery after an event, if it is the head.
    fn demote_after(self, connection: &Connection, event: i64) -> Result<()> {
        self.update(connection, &demotion(), event)
    }

    /// Removes the mark from the head: the webhook is no longer active.
    pub(super) fn demote(self, connection: &Connection) -> Result<()> {
        self.demote_after(connection, START)
    }

    /// Moves the mark if necessary, after the delivery of `event` became pending again.
    pub(super) fn requeued(self, connection: &Connection, event: i64) -> Result<()> {
        // If the delivery is now the first, the head before is the next one.
        self.demote_after(connection, event)?;
        self.promote(connection)
    }

    fn update(self, connection: &Connection, sql: &str, event: i64) -> Result<()> {
        let values = params![self.webhook, self.account, event];
        connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
    }

    /// Makes the first pending delivery due, because the webhook may have been repaired.
    pub(super) fn hasten(self, connection: &Connection, now: Timestamp) -> Result<()> {
        let sql = format!("SELECT d.id, {} FROM delivery d WHERE d.id = ({FIRST_PENDING})", progress::COLUMNS);
        let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
        let found = first(&mut statement, params![self.webhook, self.account, START], |row| {
            let id = DeliveryId::new(row.get(0)?);
            Ok(progress::read(row, 1)?.map(|progress| (id, progress)))
        })?;
        let Some((id, progress)) = found else { return Ok(()) };
        progress::write(connection, id, &progress.hastened(now))
    }
}

fn promotion() -> String {
    format!(
        "UPDATE delivery SET is_head = 1 WHERE id = ({FIRST_PENDING}) AND NOT is_head \
         AND EXISTS (SELECT 1 FROM webhook WHERE id = ?1 AND state = 'active')"
    )
}

fn demotion() -> String {
    format!("UPDATE delivery SET is_head = 0 WHERE id = ({FIRST_PENDING}) AND is_head")
}

/// Marks the heads of all lines of the operator's webhook, which became active. Some may be marked already.
pub(super) fn promote_operators(connection: &Connection) -> Result<()> {
    let sql =
        format!("UPDATE delivery SET is_head = 1 WHERE id IN (SELECT id FROM ({OPERATORS_HEADS})) AND NOT is_head");
    connection.execute(&sql, []).map(drop).map_err(store_error)
}

/// The queries whose plans are tested, with a step of each plan.
#[cfg(test)]
pub(super) fn queries() -> [(String, &'static str); 5] {
    let in_line = "SEARCH delivery USING COVERING INDEX delivery_line (webhook=? AND account=? AND event>?)";
    let by_id = "SEARCH delivery USING INTEGER PRIMARY KEY (rowid=?)";
    [
        (promotion(), in_line),
        (promotion(), by_id),
        (demotion(), in_line),
        (demotion(), by_id),
        (OPERATORS_HEADS.to_owned(), "SEARCH delivery USING COVERING INDEX delivery_line (webhook=?)"),
    ]
}
