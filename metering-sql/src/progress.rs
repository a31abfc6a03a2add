//! How far a delivery is: a part of its row.

use metering_core::events::{AttemptResult, DeliveryId, DeliveryState, Progress};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::set;
use crate::row::Reader;
use crate::transfer::DeliveryRecord;
use crate::value::Value;
use crate::values;

const COLUMNS: [&str; 8] =
    ["state", "attempts", "since", "next_at", "last_at", "last_status", "last_error", "last_response"];

/// Its columns.
pub(crate) fn values(progress: &Progress) -> Vec<Value> {
    let Progress { state, attempts, since, next_at, last } = progress;
    let last = last.as_ref();
    let (at, status) = (last.map(|last| last.at), last.and_then(|last| last.status));
    let (error, response) =
        (last.and_then(|last| last.error.as_deref()), last.and_then(|last| last.response.as_deref()));
    values![state, attempts, since, next_at, at, status, error, response]
}

/// Reads its columns.
pub(crate) fn read(row: &mut Reader<'_>) -> Result<Progress> {
    let (state, attempts, since, next_at) = (row.next()?, row.next()?, row.next()?, row.next()?);
    let (at, status, error, response): (Option<_>, _, _, _) = (row.next()?, row.next()?, row.next()?, row.next()?);
    Ok(Progress { state, attempts, since, next_at, last: at.map(|at| AttemptResult { at, status, error, response }) })
}

/// Writes how far a delivery is. One that is no longer pending is not the head of its line.
pub(crate) async fn write(db: &mut dyn Executor, id: DeliveryId, progress: &Progress) -> Result<()> {
    let mut columns = COLUMNS.to_vec();
    let mut row = [values![id], values(progress)].concat();
    if progress.state != DeliveryState::Pending {
        columns.push("is_head");
        row.extend(values![false]);
    }
    set::<DeliveryRecord>(db, &columns, &[row]).await.map(drop)
}
