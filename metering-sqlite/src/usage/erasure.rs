//! Erases the paths of an account's usage, whether it is in blocks or not folded into them yet.

use metering_core::Timestamp;
use metering_sql::WriteMode;

use crate::error::{Result, store_error};
use crate::journal::Snapshot;
use crate::rows::first;
use crate::usage::activity::{self, Entry};

/// Replaces the paths of an account's usage of `until` or earlier, or only counts the entries that have one. Usage of an
/// erased account that is not folded yet loses its path when it is folded or shown.
pub(crate) fn erase_paths(snapshot: &Snapshot<'_>, account: i64, until: Timestamp, mode: WriteMode) -> Result<u64> {
    let folded = activity::erase_paths(snapshot, account, until, mode)?;
    let mut erased = snapshot.prepare_cached("SELECT erased_at FROM account WHERE id = ?1").map_err(store_error)?;
    let erased_at = first(&mut erased, [account], |row| row.get::<_, Option<i64>>(0).map(Ok))?;
    if erased_at.flatten().is_some() {
        return Ok(folded);
    }
    let unfolded = snapshot.unfolded()?;
    let old = unfolded.of(account).filter(|noted| noted.at <= until).filter_map(Entry::of);
    Ok(folded + old.map(|mut entry| u64::from(entry.erase_path())).sum::<u64>())
}
