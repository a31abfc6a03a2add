//! How the state of an authorization changes: with its payment, when it fails, and when it can be executed after all.

use metering_core::Timestamp;
use metering_core::backend::decision;
use metering_core::chains::TxRef;
use metering_core::offers::AuthorizationRecord;
use metering_core::offers::{AuthorizationId, AuthorizationState, SettlementFailure};

use super::places;
use super::rows::{by_id, pending};
use crate::error::Result;
use crate::rows::{Values, execute};
use crate::script::Statements;
use crate::transactions::serialized::SerializedWrite;

/// An authorization was credited for the payment of `tx`.
pub(super) async fn credited(write: &SerializedWrite<'_>, row: i64, tx: TxRef) -> Result<()> {
    let sql = "UPDATE payment_authorization SET tx_chain_id = $2, tx_hash = $3 WHERE id = $1";
    let values: Values<'_> = &[&row, &tx.chain_id.cast_signed(), &tx.hash.as_bytes().as_slice()];
    execute(write.client(), sql, values).await?;
    set(write, row, AuthorizationState::Credited).await
}

/// Fails an authorization if it is pending, and gives its place back if no transaction has it.
pub(crate) async fn fail(
    write: &SerializedWrite<'_>,
    id: &AuthorizationId,
    failure: SettlementFailure,
    now: Timestamp,
) -> Result<bool> {
    let Some((row, record)) = pending(write, id).await? else { return Ok(false) };
    if let Some(place) = decision::gives_back_gas_place(&record, None) {
        places::set(write, row, None).await?;
        places::give_back(write, id.chain_id, place).await?;
    }
    set(write, row, AuthorizationState::Failed { failure, at: now }).await?;
    Ok(true)
}

/// Makes an authorization that has failed pending again, claimed until `until`.
pub(crate) async fn reopen(
    write: &SerializedWrite<'_>,
    id: &AuthorizationId,
    until: Timestamp,
) -> Result<Option<AuthorizationRecord>> {
    let Some((row, record)) = by_id(write.client(), id).await? else { return Ok(None) };
    if !matches!(record.state, AuthorizationState::Failed { .. }) {
        return Ok(None);
    }
    let state = AuthorizationState::Pending;
    set(write, row, state).await?;
    let sql = "UPDATE payment_authorization SET claimed_until = $2 WHERE id = $1";
    execute(write.client(), sql, &[&row, &until.unix_millis()]).await?;
    Ok(Some(AuthorizationRecord { state, ..record }))
}

async fn set(write: &SerializedWrite<'_>, row: i64, state: AuthorizationState) -> Result<()> {
    Ok(metering_sql::authorizations::set_state(&mut Statements(write.client()), row, state).await?)
}
