//! The transactions that were signed to execute authorizations, stored before they are sent.

use metering_core::offers::{AuthorizationId, Submission};

use super::rows::BY_ID;
use crate::error::Result;
use crate::rows::{Values, execute, first};
use crate::transactions::serialized::SerializedWrite;

/// Stores a transaction of a pending authorization that has a place, unless it is stored already.
pub(crate) async fn add(write: &SerializedWrite<'_>, id: &AuthorizationId, submission: &Submission) -> Result<bool> {
    let sql = format!(
        "SELECT x.id FROM payment_authorization x WHERE {BY_ID} AND x.state = 'pending' AND x.gas_nonce IS NOT NULL"
    );
    let values: Values<'_> = &[
        &id.chain_id.cast_signed(),
        &id.token.as_bytes().as_slice(),
        &id.payer.as_bytes().as_slice(),
        &id.nonce.as_bytes().as_slice(),
    ];
    let Some(found) = first(write.client(), &sql, values).await? else { return Ok(false) };
    let sql = "INSERT INTO authorization_submission (payment_authorization, number, hash, raw, signed_at) \
               SELECT $1, count(*) + 1, $2, $3, $4 FROM authorization_submission WHERE payment_authorization = $1 \
               ON CONFLICT (payment_authorization, hash) DO NOTHING";
    let values: Values<'_> = &[
        &found.try_get::<_, i64>(0)?,
        &submission.hash.as_bytes().as_slice(),
        &submission.raw,
        &submission.signed_at.unix_millis(),
    ];
    execute(write.client(), sql, values).await?;
    Ok(true)
}
