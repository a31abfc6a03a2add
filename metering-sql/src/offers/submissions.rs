//! The transactions that were signed to execute authorizations. Each is stored before it is sent.

use metering_core::offers::{AuthorizationId, Submission};

use crate::executor::Executor;
use crate::fault::Result;
use crate::offers::rows::{Stored, pending};
use crate::values;

/// Stores a transaction, unless it is stored already. `false` when the authorization is not pending, or has no place.
pub async fn add(db: &mut dyn Executor, id: &AuthorizationId, new: &Submission) -> Result<bool> {
    let Some(Stored { row, record, next_number, .. }) = pending(db, id).await? else { return Ok(false) };
    if record.gas.is_none() {
        return Ok(false);
    }
    if record.submissions.iter().any(|stored| stored.hash == new.hash) {
        return Ok(true);
    }
    let sql = "INSERT INTO authorization_submission (payment_authorization, number, hash, raw, signed_at) \
               VALUES (?1, ?2, ?3, ?4, ?5)";
    db.execute(sql, &[values![row, next_number, new.hash, new.raw.as_slice(), new.signed_at]]).await?;
    Ok(true)
}
