//! How far a delivery is: a part of its row.

use metering_core::events::{AttemptResult, DeliveryId, Progress};

use crate::executor::Executor;
use crate::fault::Result;
use crate::row::Reader;
use crate::value::Value;
use crate::values;

/// Its columns.
pub(crate) fn values(progress: &Progress) -> Vec<Value> {
    let Progress { state, attempts, since, next_at, last } = progress;
    let last = last.as_ref();
    let (at, status) = (last.map(|last| last.at), last.and_then(|last| last.status));
    values![state, attempts, since, next_at, at, status, last.and_then(|last| last.error.as_deref())]
}

/// Reads its columns.
pub(crate) fn read(row: &mut Reader<'_>) -> Result<Progress> {
    let (state, attempts, since, next_at) = (row.next()?, row.next()?, row.next()?, row.next()?);
    let (at, status, error): (Option<_>, _, _) = (row.next()?, row.next()?, row.next()?);
    Ok(Progress { state, attempts, since, next_at, last: at.map(|at| AttemptResult { at, status, error }) })
}

/// Writes how far a delivery is. One that is no longer pending is not the head of its line.
pub(crate) async fn write(db: &mut dyn Executor, id: DeliveryId, progress: &Progress) -> Result<()> {
    let sql = "UPDATE delivery SET state = ?1, attempts = ?2, since = ?3, next_at = ?4, last_at = ?5, \
               last_status = ?6, last_error = ?7, is_head = is_head AND ?1 = 'pending' WHERE id = ?8";
    let mut values = values(progress);
    values.extend(values![id]);
    db.execute(sql, &[values]).await.map(drop)
}
