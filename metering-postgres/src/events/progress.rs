//! How far a delivery is, in its columns.

use metering_core::events::{AttemptResult, DeliveryState, Progress};
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::rows::{Values, execute, optional_timestamp, timestamp, unsigned};

/// The columns that [`progress`] reads.
pub(crate) const PROGRESS: &str = "d.state, d.attempts, d.since, d.next_at, d.last_at, d.last_status, d.last_error";

/// How many columns it has.
pub(crate) const WIDTH: usize = 7;

/// Writes how far a delivery is. One that is no longer pending is not the head of its line.
pub(crate) async fn set<C: GenericClient>(client: &C, id: i64, progress: &Progress) -> Result<()> {
    let sql = "UPDATE delivery SET state = $2, attempts = $3, since = $4, next_at = $5, last_at = $6, \
               last_status = $7, last_error = $8, is_head = is_head AND $2 = 'pending' WHERE id = $1";
    let last = progress.last.as_ref();
    let values: Values<'_> = &[
        &id,
        &progress.state.as_str(),
        &i64::from(progress.attempts),
        &progress.since.unix_millis(),
        &progress.next_at.unix_millis(),
        &last.map(|last| last.at.unix_millis()),
        &last.and_then(|last| last.status).map(i64::from),
        &last.and_then(|last| last.error.as_deref()),
    ];
    execute(client, sql, values).await.map(drop)
}

/// Reads how far a delivery is from [`PROGRESS`], which starts at `first`.
pub(crate) fn progress(row: &Row, first: usize) -> Result<Progress> {
    let state: &str = row.try_get(first)?;
    let state = DeliveryState::from_name(state);
    let last = match optional_timestamp(row, first + 4)? {
        None => None,
        Some(at) => {
            let status = row.try_get::<_, Option<i64>>(first + 5)?.map(|_| unsigned(row, first + 5)).transpose()?;
            Some(AttemptResult { at, status, error: row.try_get(first + 6)? })
        }
    };
    Ok(Progress {
        state: state.ok_or_else(|| corrupt("a delivery is in an unknown state"))?,
        attempts: unsigned(row, first + 1)?,
        since: timestamp(row, first + 2)?,
        next_at: timestamp(row, first + 3)?,
        last,
    })
}
