//! The transactions that were signed to execute authorizations. Each is stored before it is sent.

use metering_core::offers::{AuthorizationId, Submission};

use crate::executor::Executor;
use crate::fault::Result;
use crate::offers::rows::{BY_ID, Stored, id_values, pending};
use crate::values;

/// Stores a transaction, unless it is stored already. `false` when the authorization is not pending, or has no place.
pub async fn add(db: &mut dyn Executor, id: &AuthorizationId, new: &Submission) -> Result<bool> {
    let Some(Stored { record, next_number, .. }) = pending(db, id).await? else { return Ok(false) };
    if record.gas.is_none() {
        return Ok(false);
    }
    if record.submissions.iter().any(|stored| stored.hash == new.hash) {
        return Ok(true);
    }
    insert(db, &[(*id, next_number, new)]).await.map(|()| true)
}

/// Inserts transactions of authorizations, each with its number among those of its authorization.
pub(crate) async fn insert(db: &mut dyn Executor, new: &[(AuthorizationId, i64, &Submission)]) -> Result<()> {
    let sql = format!(
        "INSERT INTO authorization_submission (payment_authorization, number, hash, raw, signed_at) \
         VALUES ((SELECT id FROM payment_authorization WHERE {BY_ID}), ?5, ?6, ?7, ?8)"
    );
    let row = |(id, number, Submission { hash, raw, signed_at }): &(AuthorizationId, i64, &Submission)| {
        let mut values = id_values(id);
        values.extend(values![number, hash, raw.as_slice(), signed_at]);
        values
    };
    db.execute(&sql, &new.iter().map(row).collect::<Vec<_>>()).await.map(drop)
}
