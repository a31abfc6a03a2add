//! Writes events with their deliveries.
//!
//! Nearly no transaction has an event, so webhooks are looked up only when there is one.

use metering_core::events::NewEvent;
use rusqlite::Connection;

use crate::error::{Result, store_error};
use crate::events::event;
use crate::events::line::Line;
use crate::rows::all;

/// The active webhooks of an account, and the operator's.
const RECEIVERS: &str =
    "SELECT id, kinds FROM webhook WHERE coalesce(account, 0) IN (0, ?1) AND state = 'active' ORDER BY id";

/// Writes an event of the account with this row number, and a delivery for each webhook that receives it.
pub(crate) fn write(connection: &Connection, account: Option<i64>, event: &NewEvent) -> Result<()> {
    let number = event::append(connection, account, event)?;
    let kind = event.data.kind().as_str();
    let mut statement = connection.prepare_cached(RECEIVERS).map_err(store_error)?;
    let receivers = all(&mut statement, [account], |row| Ok(Ok((row.get(0)?, row.get(1)?))))?;
    // By name: a kind that this version does not know must not fail the cause of the event.
    let receives = |(_, names): &(i64, String)| names.is_empty() || names.split(' ').any(|name| name == kind);
    for (webhook, _) in receivers.iter().filter(|receiver| receives(receiver)) {
        Line { webhook: *webhook, account }.insert(connection, number, event.created_at)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{deliveries, due, line, webhooks};
    use crate::migrations::migrate;

    /// However many events and deliveries are kept, and however many webhooks others have.
    #[test]
    fn lists_and_lookups_use_an_index() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let mut queries = vec![
            (RECEIVERS.to_owned(), "SEARCH webhook USING INDEX webhook_owner (<expr>=?)"),
            event::query(),
            (due::HEADS.to_owned(), "SEARCH delivery USING INDEX delivery_due (<expr>=? AND next_at<?)"),
            (due::CANDIDATES.to_owned(), "SEARCH d USING INDEX delivery_due (<expr>=? AND next_at<?)"),
            (due::select(), "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)"),
        ];
        queries.extend(line::queries());
        queries.extend(webhooks::queries());
        queries.extend(deliveries::queries());
        for (sql, expected) in queries {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let values = rusqlite::params_from_iter(vec![None::<i64>; statement.parameter_count()]);
            let steps = statement.query_map(values, |row| row.get::<_, String>(3)).unwrap();
            let steps: Vec<_> = steps.map(Result::unwrap).collect();
            assert!(steps.iter().any(|step| step.starts_with(expected)), "{sql}: {steps:?}");
            // Only the few webhooks of an account may be sorted.
            assert!(sql == RECEIVERS || !steps.iter().any(|step| step.contains("TEMP B-TREE")), "{sql}: {steps:?}");
            let scans: Vec<_> = steps.iter().filter(|step| step.starts_with("SCAN") && !step.contains(" d")).collect();
            assert!(scans.is_empty(), "{sql}: {steps:?}");
        }
    }
}
