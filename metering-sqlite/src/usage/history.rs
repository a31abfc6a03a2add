//! The latest entries of an account: usage in blocks, usage that is not folded into them yet, and the ledger.

use std::cmp::Reverse;

use metering_core::AccountId;
use metering_core::usage::Activity;
use metering_sql::{accounts, ledger, now, usage_lines};

use crate::error::{Result, store_error};
use crate::journal::Snapshot;
use crate::rows::all;
use crate::script::Statements;
use crate::usage::activity::{Entry, KEPT, unpack};
use crate::usage::newest::Newest;

/// An account's latest entries, usage and ledger together, newest first.
pub(crate) fn newest(snapshot: &Snapshot<'_>, id: &AccountId, limit: u32) -> Result<Vec<Activity>> {
    let mut statements = Statements::new(snapshot);
    let Some((account, found)) = now(accounts::by_id(&mut statements, id))? else { return Ok(Vec::new()) };
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut entries = usage_entries(snapshot, account, found.erased_at.is_some(), most)?;
    entries.extend(now(ledger::newest(&mut statements, account, limit))?);
    entries.sort_unstable_by_key(|(id, _)| Reverse(*id));
    Ok(entries.into_iter().take(most).map(|(_, activity)| activity).collect())
}

fn usage_entries(snapshot: &Snapshot<'_>, account: i64, is_erased: bool, limit: usize) -> Result<Vec<(i64, Activity)>> {
    // More are shown only while they are not folded.
    let limit = limit.min(KEPT);
    let unfolded = snapshot.unfolded()?;
    let mut newest = Newest::new(limit, is_erased);
    unfolded.of(account).for_each(|noted| newest.add(noted));
    let mut newest_first = newest.into_entries();
    newest_first.reverse();
    // Every block has at least one entry, so `limit` blocks are enough.
    let sql = "SELECT entries FROM recent_activity WHERE account = ?1 ORDER BY block DESC LIMIT ?2";
    let mut blocks = snapshot.prepare_cached(sql).map_err(store_error)?;
    let missing = i64::try_from(limit - newest_first.len()).unwrap_or(i64::MAX);
    let blocks = all(&mut blocks, [account, missing], |row| Ok(Ok(row.get_ref(0)?.as_blob()?.to_vec())))?;
    for block in blocks {
        newest_first.extend(unpack(&block)?.into_iter().rev());
    }
    newest_first.truncate(limit);
    let numbers = newest_first.iter().map(|entry| entry.line).collect();
    let lines = now(usage_lines::numbered(&mut Statements::new(snapshot), numbers))?;
    let with_line = |entry: Entry| {
        let line = lines[&entry.line].clone();
        (entry.id, entry.activity(line))
    };
    Ok(newest_first.into_iter().map(with_line).collect())
}
