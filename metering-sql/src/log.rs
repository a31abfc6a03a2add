//! The log of every posting: its epochs, bundles and tiles, and the sequencer's steps.
//!
//! Nothing here hashes or signs. `log_batch` has what is committed but not in the log yet, for databases without a
//! charge journal, and usage of imported accounts for all.

mod batch;
mod rows;
mod unlogged;

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use metering_core::access::Totals;
use metering_core::backend::credits;
use metering_core::charging::UsageChange;
use metering_core::store::{AccountRow, LogEpoch, LogStep, LoggedAccount, NewEpoch, NewLogged, StoredBundle, Taken};
use metering_core::usage::DailyTotal;
use metering_core::{AccountId, Credits, StoreError, Timestamp, UsageLine};

use crate::backend::{Backend, delete, read, write};
use crate::boxed::shared;
use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::record::{find, insert, list, put, set};
use crate::row::{Row, only};
use crate::{accounts, usage_lines, values};
use batch::Batch;
use rows::{LINES, TILES};
pub use unlogged::unlogged;

/// Leaves of a full bundle.
const BUNDLE: u64 = 256;

/// A lease that ends more than this many lease periods from now was taken by a wrong clock, and is not respected.
const LEASES: u32 = 60;

/// The root of an empty tree: the SHA-256 of nothing (RFC 6962, section 2.1).
const EMPTY_ROOT: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41,
    0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// Packs the usage of a commit for `log_batch`.
///
/// # Errors
/// When it cannot be packed.
pub fn pack(changes: &[UsageChange<i64, i64>], at: Timestamp) -> Result<Vec<u8>> {
    Batch::of(changes, at)?.pack()
}

/// Records the usage of a commit for the log, if one is open. For backends without a charge journal whose transactions
/// run one at a time.
pub async fn note_commit(db: &mut dyn Executor, changes: &[UsageChange<i64, i64>], at: Timestamp) -> Result<()> {
    if changes.is_empty() { Ok(()) } else { note(db, &Batch::of(changes, at)?, at).await }
}

/// Records an account's usage from before it was imported. Imports wait for [`begin`].
pub(crate) async fn note_import(
    db: &mut dyn Executor,
    account: i64,
    usage: &[DailyTotal],
    at: Timestamp,
) -> Result<()> {
    if usage.is_empty() {
        return Ok(());
    }
    let atoms = usage.iter().map(|total| i128::from(total.credits_used.atoms())).sum();
    note(db, &Batch::Import { account, atoms: credits(atoms)?.atoms() }, at).await
}

async fn note(db: &mut dyn Executor, batch: &Batch, at: Timestamp) -> Result<()> {
    if db.query("SELECT number FROM log_open", &[]).await?.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO log_batch (at, changes) VALUES (?1, ?2)";
    db.execute(sql, &[values![at, batch.pack()?.as_slice()]]).await.map(drop)
}

/// Begins an epoch. May take a while, as it writes a row for every account.
///
/// # Errors
/// Those of the database.
pub async fn begin(
    db: &dyn Backend,
    new: NewEpoch,
    after: Option<u32>,
    now: Timestamp,
) -> Result<Option<LogEpoch>, StoreError> {
    delete(db, (new, after, now), |db, (new, after, now)| shared(begin_epoch(db, new, *after, *now))).await
}

async fn begin_epoch(
    db: &mut dyn Executor,
    new: &NewEpoch,
    after: Option<u32>,
    now: Timestamp,
) -> Result<Option<LogEpoch>> {
    let current: Option<LogEpoch> = find(db, "ORDER BY number DESC LIMIT 1", &[]).await?;
    let same_origin: Option<LogEpoch> = find(db, "WHERE origin = ?1", &values![new.origin]).await?;
    // A store without epochs may continue the numbers of the store that it was moved from.
    if current.is_some_and(|epoch| Some(epoch.number) != after) || same_origin.is_some() {
        return Ok(None);
    }
    // Everything committed so far is in the funds, and nothing else commits before the epoch does.
    let stopped = db.stop_charges().await?;
    db.execute("UPDATE log_epoch SET ended_at = ?1 WHERE ended_at IS NULL", &[values![now]]).await?;
    // Read again: only now does it not grow any more.
    let ended: Option<LogEpoch> = find(db, "ORDER BY number DESC LIMIT 1", &[]).await?;
    db.execute("DELETE FROM log_batch", &[Vec::new()]).await?;
    let ledger = only(&db.query("SELECT coalesce(max(id), 0) FROM ledger", &[]).await?)?.get(0)?;
    let epoch = LogEpoch {
        number: after.unwrap_or(0).saturating_add(1),
        origin: new.origin.clone(),
        secret: new.secret.clone(),
        reason: new.reason,
        previous: ended.map(|epoch| epoch.head()).or_else(|| new.previous.clone()),
        began_at: now,
        ended_at: None,
        size: 0,
        root: EMPTY_ROOT,
        minimum: 0,
        accounts: 0,
        taken: Taken { journal: stopped.journal, ledger, prices: 0, openings: -1 },
        swept_from: 0,
        checkpoint: None,
    };
    insert(db, std::slice::from_ref(&epoch)).await?;
    db.execute("DELETE FROM log_open", &[Vec::new()]).await?;
    db.execute("INSERT INTO log_open (number) VALUES (?1)", &[values![epoch.number]]).await?;
    let sql = "INSERT INTO log_account (epoch, number, account, leaves, funds) \
               SELECT CAST(?1 AS BIGINT), CAST(NULL AS BIGINT), m.account, 0, m.purchased - m.used + m.granted FROM meter m";
    db.execute(sql, &[values![epoch.number]]).await?;
    for lagging in stopped.unfolded.chunks(1_000) {
        let found = accounts::select(db, "a.id {in ?1}", &values![lagging]).await?;
        let row = |(row, account): &accounts::AccountRow| Ok(values![epoch.number, row, funds(&account.totals)?]);
        let rows = found.iter().map(row).collect::<Result<Vec<_>>>()?;
        db.execute("UPDATE log_account SET funds = ?3 WHERE epoch = ?1 AND account = ?2", &rows).await?;
    }
    Ok(Some(epoch))
}

/// Balance and open holds, which no ledger entry and no usage has changed yet.
fn funds(totals: &Totals) -> Result<Credits> {
    let Totals { purchased, granted, used, .. } = totals;
    Ok(credits(i128::from(purchased.atoms()) + i128::from(granted.atoms()) - i128::from(used.atoms()))?)
}

/// All epochs in order.
pub async fn epochs(db: &mut dyn Executor) -> Result<Vec<LogEpoch>> {
    list(db, "ORDER BY number", &[]).await
}

async fn open(db: &mut dyn Executor) -> Result<Option<LogEpoch>> {
    find(db, "WHERE ended_at IS NULL", &[]).await
}

/// Claims the lease, or gives it up if `lease` is zero. Writes nothing while another node has it, or this one has more than
/// half of it left.
///
/// # Errors
/// Those of the database.
pub async fn claim(
    db: &dyn Backend,
    node: &str,
    lease: Duration,
    now: Timestamp,
) -> Result<Option<LogEpoch>, StoreError> {
    let latest = now.saturating_add(lease.saturating_mul(LEASES));
    match read(db, (), |db, ()| shared(leased(db))).await? {
        None => return Ok(None),
        Some((owner, _)) if lease.is_zero() => {
            if owner.as_deref() == Some(node) {
                write(db, node.to_owned(), |db, node| shared(give_up_lease(db, node))).await?;
            }
            return Ok(None);
        }
        Some((_, Some(until))) if until > latest => {}
        Some((Some(owner), Some(until))) if owner != node && until > now => return Ok(None),
        Some((Some(owner), Some(until))) if owner == node && until > now.saturating_add(lease / 2) => {
            return read(db, (), |db, ()| shared(open(db))).await;
        }
        Some(_) => {}
    }
    write(db, (node.to_owned(), now..latest, now.saturating_add(lease)), |db, (node, valid, until)| {
        shared(take_lease(db, node, valid.clone(), *until))
    })
    .await
}

/// Which node has the lease of the open epoch, and until when.
async fn leased(db: &mut dyn Executor) -> Result<Option<(Option<String>, Option<Timestamp>)>> {
    let rows = db.query("SELECT node, lease_until FROM log_epoch WHERE ended_at IS NULL", &[]).await?;
    rows.first().map(|row| Ok((row.get(0)?, row.get(1)?))).transpose()
}

/// Gives up the lease, unless another node took it meanwhile.
async fn give_up_lease(db: &mut dyn Executor, node: &str) -> Result<()> {
    let sql = "UPDATE log_epoch SET node = NULL, lease_until = NULL WHERE ended_at IS NULL AND node = ?1";
    db.execute(sql, &[values![node]]).await.map(drop)
}

/// Takes the lease from a node whose lease ends later than `valid` from now.
async fn take_lease(
    db: &mut dyn Executor,
    node: &str,
    valid: Range<Timestamp>,
    until: Timestamp,
) -> Result<Option<LogEpoch>> {
    let sql = "UPDATE log_epoch SET node = ?1, lease_until = ?2 \
               WHERE ended_at IS NULL AND (node IS NULL OR node = ?1 OR lease_until <= ?3 OR lease_until > ?4)";
    if db.execute(sql, &[values![node, until, valid.start, valid.end]]).await? == 0 {
        return Ok(None);
    }
    open(db).await
}

/// The states of accounts, in the order of `rows`.
pub async fn accounts(db: &mut dyn Executor, epoch: u32, rows: &[AccountRow]) -> Result<Vec<LoggedAccount>> {
    let numbers: Vec<i64> = rows.iter().map(|row| row.0).collect();
    let sql = "SELECT a.id, a.org_id, l.number, l.leaves, l.funds FROM account a \
               LEFT JOIN log_account l ON l.epoch = ?1 AND l.account = a.id WHERE a.id {in ?2}";
    let state = |row: &Row| {
        let (account, id, number): (i64, AccountId, Option<u32>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (leaves, funds) = match number {
            Some(_) => (row.get(3)?, row.get(4)?),
            None => (0, Credits::ZERO),
        };
        let row = AccountRow(account);
        Ok((row, LoggedAccount { row, id, number, leaves, funds }))
    };
    let found = db.query(sql, &values![epoch, numbers]).await?;
    let states = found.iter().map(state).collect::<Result<HashMap<_, _>>>()?;
    Ok(rows.iter().filter_map(|row| states.get(row).cloned()).collect())
}

/// The state of an account that has a log number.
pub async fn account(db: &mut dyn Executor, epoch: u32, id: &AccountId) -> Result<Option<LoggedAccount>> {
    let rows = db.query("SELECT a.id FROM account a WHERE a.org_id = ?1", &values![id.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let found = accounts(db, epoch, &[AccountRow(row.get(0)?)]).await?;
    Ok(found.into_iter().find(|account| account.number.is_some()))
}

/// The log's numbers of usage lines.
pub async fn lines(db: &mut dyn Executor) -> Result<Vec<(u32, UsageLine)>> {
    let sql = "SELECT number, route_template, http_method, source FROM log_line ORDER BY number";
    db.query(sql, &[]).await?.iter().map(|row| Ok((row.get(0)?, usage_lines::read(row, 1)?))).collect()
}

/// The states of the accounts with these numbers, in order.
pub async fn numbered(db: &mut dyn Executor, epoch: u32, numbers: &[u32]) -> Result<Vec<LoggedAccount>> {
    let numbers: Vec<i64> = numbers.iter().copied().map(i64::from).collect();
    let sql = "SELECT account FROM log_account WHERE epoch = ?1 AND number {in ?2} ORDER BY number";
    let found = db.query(sql, &values![epoch, numbers]).await?;
    let rows = found.iter().map(|row| Ok(AccountRow(row.get(0)?))).collect::<Result<Vec<_>>>()?;
    accounts(db, epoch, &rows).await
}

/// Appends a step, if the log is as the step expects.
pub async fn append(db: &mut dyn Executor, step: &LogStep) -> Result<bool> {
    let (epoch, new) = (step.epoch, i64::try_from(step.accounts.len()).unwrap_or(i64::MAX));
    let Taken { journal, ledger, prices, openings } = step.taken;
    // A step without leaves does not change the size, so what is taken is compared too.
    let sql = "UPDATE log_epoch SET size = ?4, root = ?5, accounts = accounts + ?6, journal = ?7, ledger = ?8, \
                 prices = ?9, openings = ?10, swept_from = coalesce(?11, swept_from) \
               WHERE number = ?1 AND node = ?2 AND size = ?3 AND ended_at IS NULL \
                 AND journal <= ?7 AND ledger <= ?8 AND prices <= ?9 AND openings <= ?10";
    let mut head = values![epoch, step.node, step.from, step.size, step.root, new];
    head.extend(values![journal, ledger, prices, openings, step.swept_from]);
    if db.execute(sql, &[head]).await? == 0 {
        return Ok(false);
    }
    let bundles: Vec<_> = step.bundles.iter().map(|bundle| (epoch, bundle.clone())).collect();
    put(db, &bundles).await?;
    let tile = |(level, index, hashes): &(u8, u64, Vec<u8>)| values![epoch, level, index, hashes.as_slice()];
    db.execute(&TILES.put(), &step.tiles.iter().map(tile).collect::<Vec<_>>()).await?;
    let line = |(number, line): &(u32, UsageLine)| {
        values![number, &*line.route_template, &*line.http_method, line.source.as_str()]
    };
    db.execute(&LINES.insert(), &step.lines.iter().map(line).collect::<Vec<_>>()).await?;
    let sql = "INSERT INTO log_account (epoch, number, account, leaves, funds) VALUES (?1, ?2, ?3, 0, 0) \
               ON CONFLICT (epoch, account) DO UPDATE SET number = excluded.number, leaves = 0, funds = 0";
    let account = |new: &NewLogged| values![epoch, new.number, new.row.0];
    db.execute(sql, &step.accounts.iter().map(account).collect::<Vec<_>>()).await?;
    let sql = "UPDATE log_account SET leaves = ?3, funds = ?4 \
               WHERE epoch = ?1 AND account = ?2 AND number IS NOT NULL";
    let state = |account: &LoggedAccount| values![epoch, account.row.0, account.leaves, account.funds];
    db.execute(sql, &step.swept.iter().map(state).collect::<Vec<_>>()).await?;
    if !step.batches.is_empty() {
        let deleted = db.execute("DELETE FROM log_batch WHERE id {in ?1}", &[values![step.batches]]).await?;
        if deleted != step.batches.len() as u64 {
            return Err(corrupt("a commit that is not in the log is missing"));
        }
    }
    db.trim_journal(journal).await?;
    Ok(true)
}

/// Stores a checkpoint's note, unless there is a later one.
pub async fn publish(db: &mut dyn Executor, epoch: u32, size: u64, note: &str) -> Result<()> {
    let sql = "UPDATE log_epoch SET checkpoint_size = ?2, checkpoint = ?3 \
               WHERE number = ?1 AND size >= ?2 AND (checkpoint_size IS NULL OR checkpoint_size <= ?2)";
    db.execute(sql, &[values![epoch, size, note]]).await.map(drop)
}

/// Bundles from an index on.
pub async fn bundles(db: &mut dyn Executor, epoch: u32, first: u64, limit: u32) -> Result<Vec<StoredBundle>> {
    let rest = "WHERE epoch = ?1 AND number >= ?2 ORDER BY number LIMIT ?3";
    let found: Vec<(u32, StoredBundle)> = list(db, rest, &values![epoch, first, limit]).await?;
    Ok(found.into_iter().map(|(_, bundle)| bundle).collect())
}

/// The hashes of a tile.
pub async fn tile(db: &mut dyn Executor, epoch: u32, level: u8, index: u64) -> Result<Option<Vec<u8>>> {
    let sql = "SELECT hashes FROM log_tile WHERE epoch = ?1 AND level = ?2 AND number = ?3";
    let rows = db.query(sql, &values![epoch, level, index]).await?;
    rows.first().map(|row| row.get(0)).transpose()
}

/// The bundles from the first leaf at or after a time to the first at or after another.
pub async fn bundles_of(db: &mut dyn Executor, epoch: u32, from: Timestamp, until: Timestamp) -> Result<Range<u64>> {
    let first = "SELECT b.number FROM log_bundle b WHERE b.epoch = e.number AND b.until >=";
    let sql = format!(
        "SELECT ({first} ?2 ORDER BY b.until, b.number LIMIT 1), ({first} ?3 ORDER BY b.until, b.number LIMIT 1), \
         e.minimum, e.size FROM log_epoch e WHERE e.number = ?1"
    );
    let rows = db.query(&sql, &values![epoch, from, until]).await?;
    let Some(row) = rows.first() else { return Ok(0..0) };
    let (first, last): (Option<u64>, Option<u64>) = (row.get(0)?, row.get(1)?);
    let (minimum, end) = (row.get::<u64>(2)?, row.get::<u64>(3)?.div_ceil(BUNDLE));
    let end = last.map_or(end, |last| last + 1);
    Ok(first.unwrap_or(end).max(minimum).min(end)..end)
}

/// Deletes bundles below an index, a slice at a time.
pub async fn prune(db: &mut dyn Executor, epoch: u32, below: u64, limit: u32) -> Result<u64> {
    let found: Option<LogEpoch> = find(db, "WHERE number = ?1", &values![epoch]).await?;
    let Some(found) = found else { return Ok(0) };
    // The sequencer reads from there on when it restarts.
    let swept = if found.ended_at.is_none() { found.swept_from } else { found.size };
    let minimum = below.min(swept / BUNDLE).min(found.size.saturating_sub(1) / BUNDLE).max(found.minimum);
    set::<LogEpoch>(db, &["minimum"], &[values![epoch, minimum]]).await?;
    let sql = "DELETE FROM log_bundle WHERE epoch = ?1 AND number IN (SELECT b.number FROM log_bundle b \
               WHERE b.epoch = ?1 AND b.number < ?2 ORDER BY b.number LIMIT ?3)";
    db.execute(sql, &[values![epoch, minimum, limit]]).await
}
