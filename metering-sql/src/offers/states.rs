//! The states of authorizations.

use metering_core::backend::decision;
use metering_core::chains::TxRef;
use metering_core::offers::{AuthorizationRecord, AuthorizationState};
use metering_core::payments::SettlementStep;

use crate::executor::Executor;
use crate::fault::Result;
use crate::offers::rows::{by_tx, state_values};
use crate::{numbered, values};

/// Changes the authorization that was credited for this transaction, whose payment took a step.
pub(crate) async fn payment_took(db: &mut dyn Executor, tx: TxRef, step: &SettlementStep) -> Result<()> {
    let Some(stored) = by_tx(db, tx).await? else { return Ok(()) };
    match decision::authorization_after(stored.record.state, step) {
        Some(state) => set(db, stored.row, state).await,
        None => Ok(()),
    }
}

/// Sets the state of the authorization with this row number.
pub(crate) async fn set(db: &mut dyn Executor, row: i64, state: AuthorizationState) -> Result<()> {
    let row = [values![row], state_values(state)].concat();
    numbered::set::<AuthorizationRecord>(db, &["state", "failure", "failed_at"], &[row]).await.map(drop)
}

/// Sets the usage of an authorization's request, and its state after that.
pub(crate) async fn set_used(db: &mut dyn Executor, row: i64, after: &AuthorizationRecord) -> Result<()> {
    let used = after.usage.and_then(|usage| usage.used);
    let row = [values![row, used], state_values(after.state)].concat();
    let columns = ["used_credits", "state", "failure", "failed_at"];
    numbered::set::<AuthorizationRecord>(db, &columns, &[row]).await.map(drop)
}

/// Records that an authorization was credited for a transaction.
pub(crate) async fn set_credited(db: &mut dyn Executor, row: i64, tx: TxRef) -> Result<()> {
    let row = values![row, "credited", tx.chain_id, tx.hash];
    numbered::set::<AuthorizationRecord>(db, &["state", "tx_chain_id", "tx_hash"], &[row]).await.map(drop)
}
