//! The rows of holds. The commit that opens, settles or renews a hold writes them. They are never cached, so that no
//! process settles a hold that another one has settled.

use std::sync::LazyLock;

use metering_core::access::KeyNumber;
use metering_core::charging::{Hold, HoldChange, HoldId, SettleReason, SettledHold};
use metering_core::{ClientSource, Credits, UsageLine};
use metering_sql::holds::{BY_ID, select};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, corrupt, store_error};
use crate::rows::{first, parse, timestamp};
use crate::script::dialect;

static SELECT: LazyLock<String> = LazyLock::new(|| dialect(&select(BY_ID)));

/// The hold with this id, and the row number of its account.
pub(crate) fn by_id(connection: &Connection, id: &HoldId) -> Result<Option<(i64, Hold)>> {
    let mut statement = connection.prepare_cached(&SELECT).map_err(store_error)?;
    first(&mut statement, [id.as_bytes()], hold)
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
                 captured, reason, settled_at, tokens, upstream) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
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
        hold.tokens.as_ref().map(ToString::to_string),
        hold.upstream.as_deref(),
    ];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

fn update(connection: &Connection, hold: &Hold) -> rusqlite::Result<()> {
    let sql =
        "UPDATE hold SET expires_at = ?2, captured = ?3, reason = ?4, settled_at = ?5, upstream = ?6 WHERE id = ?1";
    let (captured, reason, settled_at) = settled_columns(hold);
    let (expires_at, upstream) = (hold.expires_at.unix_millis(), hold.upstream.as_deref());
    let values = params![hold.id.as_bytes(), expires_at, captured, reason, settled_at, upstream];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

fn settled_columns(hold: &Hold) -> (Option<i64>, Option<&'static str>, Option<i64>) {
    let settled = hold.settled.map(|SettledHold { captured, reason, at }| (captured.atoms(), reason, at.unix_millis()));
    settled.map_or((None, None, None), |(captured, reason, at)| (Some(captured), Some(reason.as_str()), Some(at)))
}

/// Reads a hold, and the row number of its account, from the columns of [`select`].
fn hold(row: &Row<'_>) -> rusqlite::Result<Result<(i64, Hold)>> {
    let (account, org_id): (i64, String) = (row.get(16)?, row.get(1)?);
    let text = |index| row.get::<_, String>(index);
    let amount = |index| row.get(index).map(Credits::from_atoms);
    let source = ClientSource::from_name(&text(7)?);
    let line = UsageLine { route_template: text(5)?.into(), http_method: text(6)?.into(), source };
    let settled = settled(row, 11)?;
    let (id, key) = (HoldId::from_bytes(row.get(0)?), KeyNumber::new(row.get(2)?));
    let (amount, fallback, request_path) = (amount(3)?, amount(4)?, text(8)?.into());
    let (created_at, expires_at) = (timestamp(row, 9)?, timestamp(row, 10)?);
    let (tokens, upstream): (Option<String>, Option<String>) = (row.get(14)?, row.get(15)?);
    let read = || {
        let of = parse(&org_id)?;
        let (settled, tokens) = (settled?, tokens.as_deref().map(parse).transpose()?);
        let hold = Hold {
            id,
            account: of,
            key,
            amount,
            fallback,
            line,
            request_path,
            created_at,
            expires_at,
            settled,
            tokens,
            upstream: upstream.map(Into::into),
        };
        Ok((account, hold))
    };
    Ok(read())
}

/// The schema ensures that all columns are set or none is.
fn settled(row: &Row<'_>, first: usize) -> rusqlite::Result<Result<Option<SettledHold>>> {
    let Some(captured) = row.get::<_, Option<i64>>(first)? else { return Ok(Ok(None)) };
    let (reason, at) = (row.get::<_, String>(first + 1)?, timestamp(row, first + 2)?);
    let known = SettleReason::from_name(&reason);
    let known = known.ok_or_else(|| corrupt(format_args!("{reason:?} is not a reason to settle a hold")));
    Ok(known.map(|reason| Some(SettledHold { captured: Credits::from_atoms(captured), reason, at })))
}

#[cfg(test)]
mod tests {
    use metering_sql::holds::{EXPIRED, NEWEST_OPEN};
    use metering_sql::key_changes::OPEN_HOLDS;

    use super::*;
    use crate::migrations::migrate;

    /// No matter how many settled holds are kept.
    #[test]
    fn lists_read_no_settled_hold() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let queries = [
            (SELECT.clone(), "SEARCH h USING INDEX sqlite_autoindex_hold_1 (id=?)"),
            (select(BY_ID), "SEARCH h USING INDEX sqlite_autoindex_hold_1 (id=?)"),
            (select(NEWEST_OPEN), "SEARCH h USING INDEX hold_open (account=?)"),
            (select(EXPIRED), "SEARCH h USING INDEX hold_lease (expires_at<?)"),
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
