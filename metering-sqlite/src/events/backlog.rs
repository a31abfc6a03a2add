//! How many deliveries wait, for metrics. A reader counts them, so charges do not wait for it.

use metering_core::Timestamp;
use metering_core::events::{DeliveryBacklog, DeliveryState, WebhookOwner};
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::events::due::due;

/// Counts the entries of an index.
const COUNT: &str = "SELECT count(*) FROM delivery WHERE state = ?1";

const DUE_SINCE: &str = "SELECT next_at FROM delivery WHERE id = ?1";

/// How many deliveries wait, and since when the oldest one has been due that could be sent at `now`.
pub(crate) fn backlog(connection: &Connection, now: Timestamp) -> Result<DeliveryBacklog> {
    let mut oldest_due = None;
    for owner in [WebhookOwner::Customers, WebhookOwner::Operator] {
        for id in due(connection, now, 1, owner)? {
            let since =
                connection.prepare_cached(DUE_SINCE).and_then(|mut s| s.query_one([id.get()], |row| row.get(0)));
            let since = Timestamp::from_unix_millis(since.map_err(store_error)?);
            oldest_due = Some(oldest_due.map_or(since, |oldest: Timestamp| oldest.min(since)));
        }
    }
    let count = |state: DeliveryState| -> Result<u64> {
        let mut statement = connection.prepare_cached(COUNT).map_err(store_error)?;
        let count: i64 = statement.query_one(params![state.as_str()], |row| row.get(0)).map_err(store_error)?;
        Ok(count.unsigned_abs())
    };
    Ok(DeliveryBacklog { pending: count(DeliveryState::Pending)?, parked: count(DeliveryState::Parked)?, oldest_due })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations::migrate;

    #[test]
    fn deliveries_are_counted_in_an_index() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {COUNT}")).unwrap();
        let plan: String = statement.query_one(["parked"], |row| row.get(3)).unwrap();
        assert!(plan.starts_with("SEARCH delivery USING COVERING INDEX"), "{plan}");
    }
}
