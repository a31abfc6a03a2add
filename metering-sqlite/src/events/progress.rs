//! How far a delivery is: a part of its row.

use metering_core::Timestamp;
use metering_core::events::{AttemptResult, DeliveryId, DeliveryState, Progress};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, corrupt_column, store_error};
use crate::rows::timestamp;

/// The columns that [`read`] reads.
pub(crate) const COLUMNS: &str = "d.state, d.attempts, d.since, d.next_at, d.last_at, d.last_status, d.last_error";
/// How many there are.
pub(crate) const COLUMN_COUNT: usize = 7;

/// Writes how far a delivery is. One that is no longer pending is no head.
pub(super) fn write(connection: &Connection, id: DeliveryId, progress: &Progress) -> Result<()> {
    let sql = "UPDATE delivery SET state = ?2, attempts = ?3, since = ?4, next_at = ?5, last_at = ?6, \
                 last_status = ?7, last_error = ?8, is_head = is_head AND ?2 = 'pending' WHERE id = ?1";
    let Progress { state, attempts, since, next_at, last } = progress;
    let last = last.as_ref();
    let values = params![
        id.get(),
        state.as_str(),
        attempts,
        since.unix_millis(),
        next_at.unix_millis(),
        last.map(|last| last.at.unix_millis()),
        last.and_then(|last| last.status),
        last.and_then(|last| last.error.as_deref()),
    ];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

/// Reads how far a delivery is from [`COLUMNS`], which start at `first`.
pub(crate) fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Result<Progress>> {
    let (state, attempts): (String, i64) = (row.get(first)?, row.get(first + 1)?);
    let (since, next_at) = (timestamp(row, first + 2)?, timestamp(row, first + 3)?);
    let (at, status): (Option<i64>, Option<i64>) = (row.get(first + 4)?, row.get(first + 5)?);
    let error = row.get(first + 6)?;
    let progress = || {
        let unknown = || corrupt_column("delivery.state", format_args!("{state:?} is no state of a delivery"));
        let too_many = |_| corrupt_column("delivery.attempts", format_args!("{attempts} is no number of attempts"));
        let no_status = |status| corrupt_column("delivery.last_status", format_args!("{status} is no status"));
        let status = status.map(|status| u16::try_from(status).map_err(|_| no_status(status))).transpose()?;
        Ok(Progress {
            state: DeliveryState::from_name(&state).ok_or_else(unknown)?,
            attempts: attempts.try_into().map_err(too_many)?,
            since,
            next_at,
            last: at.map(|at| AttemptResult { at: Timestamp::from_unix_millis(at), status, error }),
        })
    };
    Ok(progress())
}
