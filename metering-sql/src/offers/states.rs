//! The states of authorizations.

use metering_core::backend::decision;
use metering_core::chains::TxRef;
use metering_core::offers::AuthorizationState;
use metering_core::payments::SettlementStep;

use crate::executor::Executor;
use crate::fault::Result;
use crate::offers::rows::{by_tx, state_values};
use crate::values;

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
    let mut values = state_values(state);
    values.extend(values![row]);
    let sql = "UPDATE payment_authorization SET state = ?1, failure = ?2, failed_at = ?3 WHERE id = ?4";
    db.execute(sql, &[values]).await.map(drop)
}

/// Records that an authorization was credited for a transaction.
pub(crate) async fn set_credited(db: &mut dyn Executor, row: i64, tx: TxRef) -> Result<()> {
    let sql = "UPDATE payment_authorization SET state = 'credited', tx_chain_id = ?2, tx_hash = ?3 WHERE id = ?1";
    db.execute(sql, &[values![row, tx.chain_id, tx.hash]]).await.map(drop)
}
