//! The states of authorizations.

use metering_core::backend::decision;
use metering_core::chains::TxRef;
use metering_core::offers::AuthorizationState;
use metering_core::payments::SettlementStep;

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::row::Row;
use crate::values;

/// Changes the authorization that was credited for this transaction, whose payment took a step.
pub async fn payment_took(db: &mut dyn Executor, tx: TxRef, step: &SettlementStep) -> Result<()> {
    let sql = "SELECT id, state, failure, failed_at FROM payment_authorization WHERE tx_hash = ?1 AND tx_chain_id = ?2";
    let rows = db.query(sql, &values![tx.hash, tx.chain_id]).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    match decision::authorization_after(state(row)?, step) {
        Some(state) => set_state(db, row.get(0)?, state).await,
        None => Ok(()),
    }
}

/// Sets the state of the authorization with this row number.
pub async fn set_state(db: &mut dyn Executor, row: i64, state: AuthorizationState) -> Result<()> {
    let (name, failure, failed_at) = match state {
        AuthorizationState::Pending => ("pending", None, None),
        AuthorizationState::Credited => ("credited", None, None),
        AuthorizationState::Failed { failure, at } => ("failed", Some(failure), Some(at)),
    };
    let sql = "UPDATE payment_authorization SET state = ?2, failure = ?3, failed_at = ?4 WHERE id = ?1";
    db.execute(sql, &[values![row, name, failure, failed_at]]).await.map(drop)
}

/// The schema ensures that a failed one, and no other, has a failure and its time.
fn state(row: &Row) -> Result<AuthorizationState> {
    let name: String = row.get(1)?;
    match (name.as_str(), row.get(2)?, row.get(3)?) {
        ("pending", None, None) => Ok(AuthorizationState::Pending),
        ("credited", None, None) => Ok(AuthorizationState::Credited),
        ("failed", Some(failure), Some(at)) => Ok(AuthorizationState::Failed { failure, at }),
        _ => {
            Err(corrupt(format_args!("payment_authorization.state: {name:?} is unknown or does not match the failure")))
        }
    }
}
