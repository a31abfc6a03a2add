//! Which deliveries are due, and claiming them.
//!
//! Only the head of a [line](crate::events::line) may be sent. A reader looks for heads that are due, so that charges do
//! not wait, and reads no others. The writer then checks each delivery that was found: another process may have claimed
//! it meanwhile.

use std::time::Duration;

use metering_core::events::{Delivery, DeliveryId, DeliveryShares, DueDelivery, WebhookOwner};
use metering_core::{StoreError, Timestamp};
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::events::{deliveries, progress, webhooks};
use crate::rows::{all, first};

/// The heads that are due, oldest first.
pub(super) const HEADS: &str = "SELECT id FROM delivery INDEXED BY delivery_due \
     WHERE is_head AND (webhook = 0) = ?2 AND next_at <= ?1 ORDER BY next_at, id LIMIT ?3";

/// Whether a delivery may be claimed at `?2`.
const CLAIMABLE: &str = "d.id = ?1 AND d.is_head AND d.next_at <= ?2 AND w.state = 'active'";

/// The deliveries that are due at `now`, oldest first, at most `limit`.
pub(crate) fn due(connection: &Connection, now: Timestamp, limit: u32, owner: WebhookOwner) -> Result<Vec<DeliveryId>> {
    // While the operator's webhook is being removed, its heads are still marked.
    if owner == WebhookOwner::Operator && !webhooks::is_operators_active(connection)? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(HEADS).map_err(store_error)?;
    let values = params![now.unix_millis(), owner == WebhookOwner::Operator, limit];
    all(&mut statement, values, |row| Ok(Ok(DeliveryId::new(row.get(0)?))))
}

/// The same with their accounts and URLs, all of them.
pub(super) const CANDIDATES: &str = "SELECT d.id, a.org_id, w.url FROM delivery d INDEXED BY delivery_due \
     CROSS JOIN webhook w ON w.id = d.webhook CROSS JOIN account a ON a.id = w.account \
     WHERE d.is_head AND (d.webhook = 0) = 0 AND d.next_at <= ?1 ORDER BY d.next_at, d.id";

/// How many deliveries without room are passed over in one look.
const MAX_PASSED: usize = 20_000;

/// The deliveries to customers' webhooks that are due at `now` and have room in `shares`, oldest first, at most `limit`.
pub(crate) fn due_within(
    connection: &Connection,
    now: Timestamp,
    limit: u32,
    shares: &mut DeliveryShares,
) -> Result<Vec<DeliveryId>> {
    let mut statement = connection.prepare_cached(CANDIDATES).map_err(store_error)?;
    let mut rows = statement.query([now.unix_millis()]).map_err(store_error)?;
    let (mut found, mut passed) = (Vec::new(), 0);
    while found.len() < limit as usize && passed < MAX_PASSED {
        let Some(row) = rows.next().map_err(store_error)? else { break };
        let mut read = || {
            let (account, url) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
            Ok(shares.take(account, url).then_some(DeliveryId::new(row.get(0)?)))
        };
        match read().map_err(store_error)? {
            Some(id) => found.push(id),
            None => passed += 1,
        }
    }
    Ok(found)
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
            progress::write(connection, *id, &progress)?;
            claimed.push(DueDelivery { delivery: Delivery { progress, ..delivery }, webhook });
        }
    }
    Ok(claimed)
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::migrations::migrate;

    /// However many accounts wait for a webhook that fails, and however many deliveries wait behind them.
    #[test]
    fn a_look_reads_only_what_is_due() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let lines = "PRAGMA foreign_keys = off; \
            INSERT INTO webhook (id, public_id, url, kinds, state, created_at) VALUES (0, zeroblob(16), '', '', 'active', 0); \
            WITH RECURSIVE line (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM line WHERE n < 10000) \
            INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at, is_head) \
              SELECT CASE WHEN n % 2 THEN 0 ELSE n END, n + step * 100000, n, 'pending', 1, 0, step * 5000 + n, step = 1 \
              FROM line, (SELECT 1 AS step UNION SELECT 2 UNION SELECT 3)";
        connection.execute_batch(lines).unwrap();
        // The head of line n is due at 5,000 + n; odd lines are the operator's.
        let table = [(5_000, [0, 0]), (5_002, [1, 1]), (5_010, [5, 5]), (50_000, [10, 10])];
        for (now, expected) in table {
            for (owner, count) in [WebhookOwner::Operator, WebhookOwner::Customers].into_iter().zip(expected) {
                let now = Timestamp::from_unix_millis(now);
                let due = due(&connection, now, 10, owner).unwrap();
                let mut statement = connection.prepare(HEADS).unwrap();
                let values = params![now.unix_millis(), owner == WebhookOwner::Operator, 10];
                let again: Vec<i64> =
                    statement.query_map(values, |row| row.get(0)).unwrap().map(Result::unwrap).collect();
                assert_eq!((due.len(), again.len()), (count, count), "{owner:?} at {now:?}");
                let steps = statement.get_status(StatementStatus::VmStep);
                assert!(steps < 150, "{steps} steps: {owner:?} at {now:?}");
            }
        }
        connection.execute("UPDATE webhook SET state = 'disabled'", []).unwrap();
        let later = Timestamp::from_unix_millis(50_000);
        assert_eq!(due(&connection, later, 10, WebhookOwner::Operator).unwrap(), [], "it is being removed");
    }
}
