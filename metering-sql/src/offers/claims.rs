//! Claims of pending authorizations, so that one process at a time continues each. Finding those that are free takes no
//! lock; what was found is checked again by the write that claims it.

use std::time::Duration;

use metering_core::offers::{AuthorizationId, AuthorizationRecord};
use metering_core::{StoreError, Timestamp};

use crate::executor::Executor;
use crate::fault::{Fault, Result};
use crate::offers::rows::{self, Stored, id_values};
use crate::record::Record;
use crate::{numbered, values};

/// For how long an authorization that cannot be read is put off. It must not hold up the others.
const UNREADABLE: Duration = Duration::from_secs(60 * 60);

/// The query for the pending authorizations that are unclaimed at `?1`, at most `limit`. It reads as many entries of
/// the index `payment_authorization_claim` as it returns. The limit is a literal: with an unknown limit PostgreSQL
/// would plan for a large one, and sort all that are pending.
#[must_use]
pub fn free(limit: u32) -> String {
    format!(
        "SELECT id FROM payment_authorization WHERE state = 'pending' AND claimed_until <= ?1 \
         ORDER BY claimed_until, id LIMIT {limit}"
    )
}

/// The condition for those of the authorizations `?1` that may still be claimed at `?2`.
pub const STILL_FREE: &str = "payment_authorization.id {in ?1} AND state = 'pending' AND claimed_until <= ?2";

/// The row numbers of those that can be claimed, at most `limit`, those whose claims ended longest ago first.
pub async fn find(db: &mut dyn Executor, now: Timestamp, limit: u32) -> Result<Vec<i64>> {
    // Rounded up, so that a connection prepares few statements.
    let sql = free(limit.checked_next_power_of_two().unwrap_or(limit));
    let rows = db.query(&sql, &values![now]).await?;
    rows.iter().take(limit.try_into().unwrap_or(usize::MAX)).map(|row| row.get(0)).collect()
}

/// Claims those of the authorizations found that are still free. Those that cannot be read are put off.
pub async fn claim(
    db: &mut dyn Executor,
    found: &[i64],
    now: Timestamp,
    lease: Duration,
) -> Result<Vec<AuthorizationRecord>> {
    let (mut free, mut unreadable) = (Vec::new(), Vec::new());
    for (row, rows) in rows::rows(db, STILL_FREE, &values![found, now]).await? {
        match rows::read(&rows) {
            Err(Fault::Store(StoreError::Corrupt(problem))) => {
                tracing::error!(row, problem, "an authorization cannot be read; it is put off for an hour");
                unreadable.push(row);
            }
            read => free.push(read?),
        }
    }
    set(db, &unreadable, now.saturating_add(UNREADABLE)).await?;
    free.sort_by_key(|stored| (stored.claimed_until, stored.row));
    let rows: Vec<i64> = free.iter().map(|stored| stored.row).collect();
    set(db, &rows, now.saturating_add(lease)).await?;
    Ok(free.into_iter().map(|Stored { record, .. }| record).collect())
}

/// Claims an authorization until `until` if it is pending, even if another process has claimed it.
pub async fn extend(db: &mut dyn Executor, id: &AuthorizationId, until: Timestamp) -> Result<()> {
    let sql = format!("{} AND state = 'pending'", <(AuthorizationRecord, Timestamp)>::TABLE.update(&["claimed_until"]));
    db.execute(&sql, &[[id_values(id), values![until]].concat()]).await.map(drop)
}

/// Claims the authorizations with these row numbers until `until`.
pub(crate) async fn set(db: &mut dyn Executor, rows: &[i64], until: Timestamp) -> Result<()> {
    let rows: Vec<_> = rows.iter().map(|row| values![row, until]).collect();
    numbered::set::<(AuthorizationRecord, Timestamp)>(db, &["claimed_until"], &rows).await.map(drop)
}
