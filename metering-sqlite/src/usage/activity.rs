//! Recent activity: one log for all accounts. New entries go to its end and are linked per account; as the log grows, a
//! sweep deletes old ones.
//!
//! A table keyed by account would touch one page per account in each commit; the end of a log is a single page. For the
//! same reason an account's surplus entries are not deleted at once: each may be on a page of its own. Instead the
//! account's floor rises, and a sweep cycles through the log and deletes the entries below their account's floor.

use std::collections::HashMap;
use std::sync::Arc;

use metering_core::charging::{UsageChange, UsageKind};
use metering_core::money::LedgerKind;
use metering_core::usage::{ACTIVITY_KEPT, Activity, ActivityKind};
use metering_core::{ClientSource, Credits, Timestamp, UsageLine};
use rusqlite::{Connection, Row, params};

use crate::charging::cache::Cache;
use crate::error::{Result, corrupt, store_error};
use crate::rows::{all, first, payment_ref, timestamp};

/// Entries that the sweep visits per new entry. With two, at most half of the log is garbage: during one full round,
/// the new entries number at most half of those visited.
const SWEPT_PER_ENTRY: usize = 2;

/// Appends an entry for each usage change and advances the accounts' chains in the cache. The caller writes the chains.
pub(crate) fn append(
    connection: &Connection,
    cache: &mut Cache,
    usage: &[UsageChange<i64, i64>],
    now: Timestamp,
) -> Result<()> {
    let mut insert = connection
        .prepare_cached(
            "INSERT INTO activity (id, account, previous, line, amount, refund, calls, request_path, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )
        .map_err(store_error)?;
    for change in usage {
        let id = cache.next_in_sequence(connection)?;
        let chain = &mut cache.known_account(change.account).chain;
        let refund = change.kind == UsageKind::Refunded;
        let calls = i64::try_from(change.calls).unwrap_or(i64::MAX);
        let amount = -change.added_credits().atoms();
        let path = change.request_path.as_deref();
        insert
            .execute((id, change.account, chain.head, change.line, amount, refund, calls, path, now.unix_millis()))
            .map_err(store_error)?;
        chain.head = Some(id);
        chain.since_mark += 1;
        if chain.since_mark >= ACTIVITY_KEPT {
            chain.floor = chain.mark;
            chain.mark = Some(id);
            chain.since_mark = 0;
        }
    }
    Ok(())
}

/// Continues the sweep after `new_entries` new entries. After a process starts, its first sweep begins at a random
/// entry: otherwise processes that never live for a full round would never reach some parts of the log.
pub(crate) fn sweep(connection: &Connection, cache: &mut Cache, new_entries: usize) -> Result<()> {
    let from = match cache.swept_to {
        Some(from) => from,
        None => anywhere(connection)?,
    };
    let rows = i64::try_from(new_entries * SWEPT_PER_ENTRY).unwrap_or(i64::MAX);
    let sql = "SELECT id FROM activity WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET ?2";
    let mut ahead = connection.prepare_cached(sql).map_err(store_error)?;
    let until = first(&mut ahead, [from, rows], |row| row.get::<_, i64>(0).map(Ok))?;
    let sql = "DELETE FROM activity WHERE id > ?1 AND id <= ?2 \
               AND id <= (SELECT activity_floor FROM meter WHERE meter.account = activity.account)";
    let mut delete = connection.prepare_cached(sql).map_err(store_error)?;
    delete.execute([from, until.unwrap_or(i64::MAX)]).map_err(store_error)?;
    // At the end of the log, start the next round.
    cache.swept_to = Some(until.unwrap_or(0));
    Ok(())
}

fn anywhere(connection: &Connection) -> Result<i64> {
    let sql = "SELECT abs(random() % (1 + coalesce((SELECT max(id) FROM activity), 0)))";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    statement.query_row([], |row| row.get(0)).map_err(store_error)
}

/// An account's latest entries, usage and ledger together, newest first.
pub(crate) fn newest(connection: &Connection, account: i64, limit: usize) -> Result<Vec<Activity>> {
    let mut entries = usage_entries(connection, account, limit)?;
    entries.extend(ledger_entries(connection, account, limit)?);
    entries.sort_unstable_by_key(|(id, _)| std::cmp::Reverse(*id));
    Ok(entries.into_iter().take(limit).map(|(_, activity)| activity).collect())
}

fn usage_entries(connection: &Connection, account: i64, limit: usize) -> Result<Vec<(i64, Activity)>> {
    let sql = "SELECT activity_head, coalesce(activity_floor, 0) FROM meter WHERE account = ?1";
    let mut ends = connection.prepare_cached(sql).map_err(store_error)?;
    let ends = first(&mut ends, [account], |row| Ok(Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, i64>(1)?))))?;
    let (mut next, floor) = ends.unwrap_or((None, 0));
    let mut entry = connection
        .prepare_cached(
            "SELECT previous, line, amount, refund, calls, request_path, created_at FROM activity WHERE id = ?1",
        )
        .map_err(store_error)?;
    let mut lines = HashMap::new();
    let mut entries = Vec::new();
    while let Some(id) = next
        && id > floor
        && entries.len() < limit
    {
        let found = first(&mut entry, [id], |row| {
            let (previous, line) = (row.get(0)?, row.get::<_, i64>(1)?);
            usage_entry(id, row).map(|activity| Ok((previous, line, activity)))
        })?;
        let Some((previous, line, mut activity)) = found else { break };
        let line = match lines.get(&line) {
            Some(known) => UsageLine::clone(known),
            None => lines.entry(line).or_insert(usage_line(connection, line)?).clone(),
        };
        activity.line = Some(line);
        entries.push((id, activity));
        next = previous;
    }
    Ok(entries)
}

fn usage_entry(id: i64, row: &Row<'_>) -> rusqlite::Result<Activity> {
    let refund: bool = row.get(3)?;
    Ok(Activity {
        id: format!("act_{id}"),
        kind: if refund { ActivityKind::UsageRefund } else { ActivityKind::Usage },
        amount: Credits::from_atoms(row.get(2)?),
        description: None,
        line: None,
        request_path: row.get::<_, Option<String>>(5)?.map(Arc::from),
        calls: row.get::<_, i64>(4)?.unsigned_abs(),
        payment: None,
        created_at: timestamp(row, 6)?,
    })
}

/// The usage line with this id.
pub(crate) fn usage_line(connection: &Connection, id: i64) -> Result<UsageLine> {
    let sql = "SELECT route_template, http_method, source FROM usage_line WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let line = first(&mut statement, [id], |row| {
        let text = |index| row.get::<_, String>(index);
        let source = ClientSource::from_name(&text(2)?);
        Ok(Ok(UsageLine { route_template: text(0)?.into(), http_method: text(1)?.into(), source }))
    })?;
    line.ok_or_else(|| corrupt(format_args!("usage line {id} is missing")))
}

fn ledger_entries(connection: &Connection, account: i64, limit: usize) -> Result<Vec<(i64, Activity)>> {
    let sql = "SELECT id, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id FROM ledger \
               WHERE account = ?1 ORDER BY id DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    all(&mut statement, params![account, limit], |row| {
        let id: i64 = row.get(0)?;
        let kind: String = row.get(1)?;
        let amount = Credits::from_atoms(row.get(2)?);
        let description = Some(row.get(3)?);
        let created_at = timestamp(row, 4)?;
        let payment = payment_ref(row, 5)?;
        Ok(ledger_kind(&kind).map(|kind| {
            let (id_text, kind) = (format!("act_{id}"), ActivityKind::Ledger(kind));
            let activity = Activity {
                id: id_text,
                kind,
                amount,
                description,
                line: None,
                request_path: None,
                calls: 0,
                payment,
                created_at,
            };
            (id, activity)
        }))
    })
}

/// Parses a stored ledger kind.
pub(crate) fn ledger_kind(name: &str) -> Result<LedgerKind> {
    LedgerKind::from_name(name).ok_or_else(|| corrupt(format_args!("unknown ledger kind {name:?}")))
}
