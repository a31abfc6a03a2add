//! Recent activity of an account: its ring of blocks of usage entries, its tail of newer ones, and its ledger entries.

use std::sync::Arc;

use metering_core::usage::{ACTIVITY_KEPT, Activity};
use metering_core::{AccountId, Credits, Timestamp, UsageLine};
use metering_sql::{WriteMode, accounts, ledger};

use crate::charging::entry::{Entry, Path, unpack};
use crate::charging::known::Known;
use crate::charging::tail::Folds;
use crate::connection::session::GenericClient;
use crate::connection::value::Value;
use crate::error::Result;
use crate::rows::{all, execute, one};
use crate::statements::Statements;

/// How many of the newest entry numbers are shown. Older entries may still be stored, but with gaps between them.
const SHOWN: i64 = ACTIVITY_KEPT as i64;

/// Writes folded blocks. If a block was already folded before it was full, its newer entries are prepended.
pub(crate) const BLOCKS: &str = "INSERT INTO activity AS old (account, slot, block, entries) \
     SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BYTEA[]) \
     ON CONFLICT (account, slot) DO UPDATE SET block = excluded.block, \
     entries = CASE WHEN old.block = excluded.block THEN excluded.entries || old.entries ELSE excluded.entries END";

/// The columns of [`BLOCKS`].
#[derive(Default)]
pub(crate) struct BlockRows<'f> {
    accounts: Vec<i64>,
    slots: Vec<i64>,
    blocks: Vec<i64>,
    entries: Vec<&'f [u8]>,
}

impl<'f> BlockRows<'f> {
    pub(crate) fn new(folds: &'f Folds) -> Self {
        let mut rows = Self::default();
        for ((account, slot), (block, entries)) in &folds.blocks {
            rows.accounts.push(*account);
            rows.slots.push(*slot);
            rows.blocks.push(*block);
            rows.entries.push(entries);
        }
        rows
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    pub(crate) fn values(&self) -> [&dyn Value; 4] {
        [&self.accounts, &self.slots, &self.blocks, &self.entries]
    }
}

/// An account's latest entries, usage and ledger together, newest first.
pub(crate) async fn newest<C: GenericClient>(
    client: &C,
    known: &Known,
    id: &AccountId,
    limit: u32,
) -> Result<Vec<Activity>> {
    let mut statements = Statements(client);
    let Some((account, _)) = accounts::by_id(&mut statements, id).await? else { return Ok(Vec::new()) };
    let mut entries = usage_entries(client, known, account, limit).await?;
    entries.extend(ledger::newest(&mut statements, account, limit).await?);
    entries.sort_unstable_by_key(|(entry, _)| std::cmp::Reverse(*entry));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(entries.into_iter().take(limit).map(|(_, activity)| activity).collect())
}

async fn usage_entries<C: GenericClient>(
    client: &C,
    known: &Known,
    account: i64,
    limit: u32,
) -> Result<Vec<(i64, Activity)>> {
    let meter = one(client, "SELECT entries, tail FROM meter WHERE account = $1", &[&account]).await?;
    let oldest = meter.try_get::<_, i64>(0)? - SHOWN;
    // Every block has at least one entry, so `limit` blocks are enough.
    let sql = "SELECT entries FROM activity WHERE account = $1 ORDER BY block DESC LIMIT $2";
    let blocks = all(client, sql, &[&account, &i64::from(limit)]).await?;
    let packed = [Ok(meter.try_get(1)?)].into_iter().chain(blocks.iter().map(|row| row.try_get(0)));
    let (mut entries, most) = (Vec::new(), usize::try_from(limit).unwrap_or(usize::MAX));
    for packed in packed {
        for entry in unpack(packed?)? {
            if entry.number <= oldest || entries.len() == most {
                return Ok(entries);
            }
            entries.push((entry.number, usage_entry(&entry, known.line(client, entry.line).await?)));
        }
    }
    Ok(entries)
}

/// Replaces the paths of an account's usage of `until` or earlier, or only counts the entries that have one.
pub(crate) async fn erase_paths<C: GenericClient>(
    client: &C,
    account: i64,
    until: Timestamp,
    mode: WriteMode,
) -> Result<u64> {
    let lock = if mode == WriteMode::Write { "FOR UPDATE" } else { "" };
    let meter = one(client, &format!("SELECT tail FROM meter WHERE account = $1 {lock}"), &[&account]).await?;
    let (tail, mut erased) = without_paths(meter.try_get(0)?, until)?;
    if erased > 0 && mode == WriteMode::Write {
        execute(client, "UPDATE meter SET tail = $2 WHERE account = $1", &[&account, &tail]).await?;
    }
    for row in all(client, "SELECT slot, entries FROM activity WHERE account = $1", &[&account]).await? {
        let (entries, found) = without_paths(row.try_get(1)?, until)?;
        if found > 0 && mode == WriteMode::Write {
            let sql = "UPDATE activity SET entries = $3 WHERE account = $1 AND slot = $2";
            execute(client, sql, &[&account, &row.try_get::<_, i64>(0)?, &entries]).await?;
        }
        erased += found;
    }
    Ok(erased)
}

/// Packed entries in which the templates of routes replace the paths of entries of `until` or earlier, and how many had
/// a path.
fn without_paths(packed: &[u8], until: Timestamp) -> Result<(Vec<u8>, u64)> {
    let (mut repacked, mut found) = (Vec::with_capacity(packed.len()), 0);
    for mut entry in unpack(packed)? {
        if entry.created_at <= until.unix_millis() && matches!(entry.path, Path::Other(_)) {
            (entry.path, found) = (Path::Template, found + 1);
        }
        repacked = entry.pack(repacked)?;
    }
    Ok((repacked, found))
}

fn usage_entry(entry: &Entry<'_>, line: UsageLine) -> Activity {
    Activity {
        id: format!("act_{}", entry.number),
        kind: entry.kind.into(),
        amount: Credits::from_atoms(entry.amount),
        description: None,
        request_path: entry.path.get(Arc::clone(&line.route_template)),
        line: Some(line),
        calls: entry.calls.unsigned_abs(),
        payment: None,
        key: Some(entry.key),
        created_at: Timestamp::from_unix_millis(entry.created_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charging::entry::tests::entry;

    #[test]
    fn only_old_entries_lose_their_path() {
        let with_path = |number, path| Entry { path: Path::Other(path), created_at: number, ..entry(number, -1) };
        let [newer, old] = [with_path(3, "/c"), with_path(2, "/b")];
        let packed = old.pack(newer.pack(Vec::new()).unwrap()).unwrap();
        let (repacked, found) = without_paths(&packed, Timestamp::from_unix_millis(2)).unwrap();
        assert_eq!((unpack(&repacked).unwrap(), found), (vec![newer, Entry { path: Path::Template, ..old }], 1));
    }
}
