//! Which deliveries are due, and claiming them.
//!
//! Deliveries of one account's events to one webhook are a line: only its first pending delivery may be sent. Looking
//! for those reads an entry per pending delivery, so a reader does it, and charges do not wait. The writer then checks
//! each delivery that was found: another process may have claimed it meanwhile.

use std::time::Duration;

use metering_core::events::{Delivery, DeliveryId, DueDelivery, WebhookOwner};
use metering_core::{StoreError, Timestamp};
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::events::{deliveries, webhooks};
use crate::rows::{all, first};

/// The first delivery of each line, if it is due. SQLite takes the columns without an aggregate from the row that has
/// the minimum.
pub(super) const HEADS: &str = "SELECT d.id FROM \
     (SELECT id, webhook, next_at, min(event) FROM delivery INDEXED BY delivery_line WHERE state = 'pending' \
       GROUP BY webhook, account) d \
     CROSS JOIN webhook w ON w.id = d.webhook \
     WHERE d.next_at <= ?1 AND w.state = 'active' AND (w.account IS NULL) = ?2 ORDER BY d.next_at, d.id LIMIT ?3";

/// Whether a delivery may be claimed at `?2`.
const CLAIMABLE: &str = "d.id = ?1 AND d.state = 'pending' AND d.next_at <= ?2 AND w.state = 'active' \
     AND NOT EXISTS (SELECT 1 FROM delivery p INDEXED BY delivery_line WHERE p.webhook = d.webhook AND p.account IS d.account \
       AND p.event < d.event AND p.state = 'pending')";

/// The deliveries that are due at `now`, oldest first, at most `limit`.
pub(crate) fn due(connection: &Connection, now: Timestamp, limit: u32, owner: WebhookOwner) -> Result<Vec<DeliveryId>> {
    let mut statement = connection.prepare_cached(HEADS).map_err(store_error)?;
    let values = params![now.unix_millis(), owner == WebhookOwner::Operator, limit];
    all(&mut statement, values, |row| Ok(Ok(DeliveryId::new(row.get(0)?))))
}

/// Reads a delivery that may be claimed, and its webhook.
pub(super) fn select() -> String {
    let (columns, tables) = (deliveries::columns(), deliveries::TABLES);
    format!(
        "SELECT {columns}, {} FROM {tables} LEFT JOIN account b ON b.id = w.account WHERE {CLAIMABLE}",
        webhooks::COLUMNS
    )
}

/// For how long a delivery that cannot be read is put off. It must not hold up the others.
const UNREADABLE: Duration = Duration::from_secs(60 * 60);

fn put_off(connection: &Connection, id: DeliveryId, until: Timestamp) -> Result<()> {
    let sql = "UPDATE delivery SET next_at = ?2 WHERE id = ?1";
    let values = params![id.get(), until.unix_millis()];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

/// Claims those of these deliveries that are still due.
pub(crate) fn claim(
    connection: &Connection,
    ids: &[DeliveryId],
    now: Timestamp,
    lease: Duration,
) -> Result<Vec<DueDelivery>> {
    let mut statement = connection.prepare_cached(&select()).map_err(store_error)?;
    let mut claimed = Vec::with_capacity(ids.len());
    for id in ids {
        let found = match first(&mut statement, params![id.get(), now.unix_millis()], |row| {
            let (stored, webhook) = (deliveries::stored(row)?, webhooks::webhook(row, deliveries::COLUMN_COUNT)?);
            Ok(stored.and_then(|stored| Ok((stored.delivery, webhook?))))
        }) {
            Err(StoreError::Corrupt(problem)) => {
                tracing::error!(delivery = id.get(), problem, "a delivery cannot be read; it is put off for an hour");
                put_off(connection, *id, now.saturating_add(UNREADABLE))?;
                None
            }
            found => found?,
        };
        if let Some((delivery, webhook)) = found {
            let progress = delivery.progress.claimed(now, lease);
            deliveries::set_progress(connection, *id, &progress)?;
            claimed.push(DueDelivery { delivery: Delivery { progress, ..delivery }, webhook });
        }
    }
    Ok(claimed)
}
