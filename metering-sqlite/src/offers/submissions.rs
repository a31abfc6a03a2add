//! The transactions that were signed to execute authorizations. Each is stored before it is sent.

use metering_core::offers::{AuthorizationId, Submission};
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::offers::rows::pending;

/// Stores a transaction, unless it is stored already. `false` when the authorization is not pending, or has no place.
pub(crate) fn add(connection: &Connection, id: &AuthorizationId, new: &Submission) -> Result<bool> {
    let Some((row, record)) = pending(connection, id)?.filter(|(_, record)| record.gas.is_some()) else {
        return Ok(false);
    };
    if record.submissions.iter().any(|stored| stored.hash == new.hash) {
        return Ok(true);
    }
    let sql = "INSERT INTO authorization_submission (payment_authorization, number, hash, raw, signed_at) \
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let number = i64::try_from(record.submissions.len()).unwrap_or(i64::MAX);
    let values = params![row, number, new.hash.as_bytes(), new.raw, new.signed_at.unix_millis()];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map_err(store_error)?;
    Ok(true)
}
