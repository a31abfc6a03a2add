//! The rows of holds. The commit that opens, settles or renews a hold writes them. They are never cached, so that no
//! process settles a hold that another one has settled.

use metering_core::access::KeyNumber;
use metering_core::charging::{Hold, HoldChange, HoldId, SettleReason, SettledHold};
use metering_core::{ClientSource, Credits, UsageLine};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, corrupt, store_error};
use crate::rows::{first, parse, timestamp};

/// The columns that [`hold`] reads from [`TABLES`].
pub(crate) const COLUMNS: &str = "h.id, h.account, a.org_id, h.key, h.amount, h.fallback, n.route_template, \
     n.http_method, n.source, h.request_path, h.created_at, h.expires_at, h.captured, h.reason, h.settled_at";

/// `CROSS JOIN` makes SQLite join in the order written.
pub(crate) const TABLES: &str =
    "hold h CROSS JOIN account a ON a.id = h.account CROSS JOIN usage_line n ON n.id = h.line";

/// The hold with this id, and the row number of its account.
pub(crate) fn by_id(connection: &Connection, id: &HoldId) -> Result<Option<(i64, Hold)>> {
    let mut statement = connection.prepare_cached(&select()).map_err(store_error)?;
    first(&mut statement, [id.as_bytes()], hold)
}

fn select() -> String {
    format!("SELECT {COLUMNS} FROM {TABLES} WHERE h.id = ?1")
}

/// Writes the holds that a batch opened or changed.
pub(crate) fn write(connection: &Connection, changes: &[HoldChange<i64, i64>]) -> rusqlite::Result<()> {
    for HoldChange { account, line, is_new, hold } in changes {
        if *is_new {
            insert(connection, *account, *line, hold)?;
        } else {
            update(connection, hold)?;
        }
    }
    Ok(())
}

fn insert(connection: &Connection, account: i64, line: i64, hold: &Hold) -> rusqlite::Result<()> {
    let sql = "INSERT INTO hold (id, account, key, amount, fallback, line, request_path, created_at, expires_at, \
                 captured, reason, settled_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let (captured, reason, settled_at) = settled_columns(hold);
    let values = params![
        hold.id.as_bytes(),
        account,
        hold.key.get(),
        hold.amount.atoms(),
        hold.fallback.atoms(),
        line,
        &*hold.request_path,
        hold.created_at.unix_millis(),
        hold.expires_at.unix_millis(),
        captured,
        reason,
        settled_at,
    ];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

fn update(connection: &Connection, hold: &Hold) -> rusqlite::Result<()> {
    let sql = "UPDATE hold SET expires_at = ?2, captured = ?3, reason = ?4, settled_at = ?5 WHERE id = ?1";
    let (captured, reason, settled_at) = settled_columns(hold);
    let values = params![hold.id.as_bytes(), hold.expires_at.unix_millis(), captured, reason, settled_at];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

fn settled_columns(hold: &Hold) -> (Option<i64>, Option<&'static str>, Option<i64>) {
    let settled = hold.settled.map(|SettledHold { captured, reason, at }| (captured.atoms(), reason, at.unix_millis()));
    settled.map_or((None, None, None), |(captured, reason, at)| (Some(captured), Some(reason.as_str()), Some(at)))
}

/// Reads a hold, and the row number of its account.
pub(crate) fn hold(row: &Row<'_>) -> rusqlite::Result<Result<(i64, Hold)>> {
    let (account, org_id): (i64, String) = (row.get(1)?, row.get(2)?);
    let text = |index| row.get::<_, String>(index);
    let amount = |index| row.get(index).map(Credits::from_atoms);
    let source = ClientSource::from_name(&text(8)?);
    let line = UsageLine { route_template: text(6)?.into(), http_method: text(7)?.into(), source };
    let settled = settled(row, 12)?;
    let (id, key) = (HoldId::from_bytes(row.get(0)?), KeyNumber::new(row.get(3)?));
    let (amount, fallback, request_path) = (amount(4)?, amount(5)?, text(9)?.into());
    let (created_at, expires_at) = (timestamp(row, 10)?, timestamp(row, 11)?);
    let read = || {
        let of = parse(&org_id)?;
        let settled = settled?;
        let hold = Hold { id, account: of, key, amount, fallback, line, request_path, created_at, expires_at, settled };
        Ok((account, hold))
    };
    Ok(read())
}

/// The schema ensures that all columns are set or none is.
fn settled(row: &Row<'_>, first: usize) -> rusqlite::Result<Result<Option<SettledHold>>> {
    let Some(captured) = row.get::<_, Option<i64>>(first)? else { return Ok(Ok(None)) };
    let (reason, at) = (row.get::<_, String>(first + 1)?, timestamp(row, first + 2)?);
    let known = SettleReason::from_name(&reason);
    let known = known.ok_or_else(|| corrupt(format_args!("{reason:?} is no reason to settle a hold")));
    Ok(known.map(|reason| Some(SettledHold { captured: Credits::from_atoms(captured), reason, at })))
}

#[cfg(test)]
mod tests {
    use metering_sql::holds::{self, BY_ID, EXPIRED, NEWEST_OPEN};
    use metering_sql::key_changes::OPEN_HOLDS;

    use super::*;
    use crate::migrations::migrate;
    use crate::script::dialect;

    /// However many settled holds are kept.
    #[test]
    fn lists_read_no_settled_hold() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let queries = [
            (select(), "SEARCH h USING INDEX sqlite_autoindex_hold_1 (id=?)"),
            (holds::select(BY_ID), "SEARCH h USING INDEX sqlite_autoindex_hold_1 (id=?)"),
            (holds::select(NEWEST_OPEN), "SEARCH h USING INDEX hold_open (account=?)"),
            (holds::select(EXPIRED), "SEARCH h USING INDEX hold_lease (expires_at<?)"),
            (OPEN_HOLDS.to_owned(), "SEARCH hold USING INDEX hold_open (account=? AND created_at>?)"),
        ];
        for (sql, expected) in queries {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", dialect(&sql))).unwrap();
            let values = rusqlite::params_from_iter(vec![None::<i64>; statement.parameter_count()]);
            let steps = statement.query_map(values, |row| row.get::<_, String>(3)).unwrap();
            let steps: Vec<_> = steps.map(Result::unwrap).collect();
            assert!(steps[0].starts_with(expected), "{sql}: {steps:?}");
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{sql}: {steps:?}");
        }
    }
}
