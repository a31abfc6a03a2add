//! Stores authorizations, each once, and what becomes of them.

use std::time::Duration;

use metering_core::Timestamp;
use metering_core::backend::decision::{self, Decided};
use metering_core::chains::{Address, TxRef};
use metering_core::offers::{
    AuthorizationId, AuthorizationRecord, AuthorizationState, IdentifierHash, SettlementFailure,
};
use metering_core::store::{AuthorizationCredited, AuthorizationOpened, NewAuthorization, PaymentCredit};

use crate::executor::Executor;
use crate::fault::Result;
use crate::offers::rows::Stored;
use crate::offers::{claims, places, rows, states};
use crate::{accounts, numbered, payments};

/// The record of an authorization.
pub async fn by_id(db: &mut dyn Executor, id: &AuthorizationId) -> Result<Option<AuthorizationRecord>> {
    Ok(rows::by_id(db, id).await?.map(|stored| stored.record))
}

/// The record of the authorization that was credited for a transaction.
pub async fn by_tx(db: &mut dyn Executor, tx: TxRef) -> Result<Option<AuthorizationRecord>> {
    Ok(rows::by_tx(db, tx).await?.map(|stored| stored.record))
}

/// The record of the authorization of this payer whose client gave it this id.
pub async fn by_identifier(
    db: &mut dyn Executor,
    payer: &Address,
    identifier: &IdentifierHash,
) -> Result<Option<AuthorizationRecord>> {
    Ok(rows::by_identifier(db, payer, identifier).await?.map(|stored| stored.record))
}

/// Stores an accepted authorization, claimed for `lease`.
pub async fn open(db: &mut dyn Executor, new: &NewAuthorization, lease: Duration) -> Result<AuthorizationOpened> {
    let known = by_id(db, &new.signed.id()).await?;
    let same = match &new.identifier {
        Some(identifier) => rows::by_identifier(db, &new.signed.authorization.from, identifier).await?,
        None => None,
    };
    let account = accounts::by_id(db, &new.account).await?;
    let record = match decision::open_authorization(new.clone(), known, same.is_some(), account) {
        Decided::Accepted((_, record)) => record,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    let claimed_until = record.received_at.saturating_add(lease);
    numbered::insert(db, &[(record.clone(), claimed_until)]).await?;
    Ok(AuthorizationOpened::Opened(record))
}

/// Credits an executed authorization.
pub async fn credit(
    db: &mut dyn Executor,
    id: &AuthorizationId,
    credit: &PaymentCredit,
) -> Result<AuthorizationCredited> {
    let facts = payments::credit_facts(db, credit).await?;
    let found = rows::by_id(db, id).await?.map(|Stored { row, record, .. }| (row, record));
    let (row, record) = found.unzip();
    let (row, changes) = match (row, decision::credit_authorization(credit.clone(), record, facts)) {
        (_, Decided::Refused(refusal)) => return Ok(refusal),
        // Without a record, there is nothing to credit.
        (None, Decided::Accepted(_)) => return Ok(AuthorizationCredited::NoSuchAccount),
        (Some(row), Decided::Accepted(changes)) => (row, changes),
    };
    let tx = changes.record.payment.tx;
    let account = payments::write_credit(db, changes).await?;
    states::set_credited(db, row, tx).await?;
    Ok(AuthorizationCredited::Account(account))
}

/// Records that a pending authorization cannot be executed. Returns whether it was pending.
pub async fn fail(
    db: &mut dyn Executor,
    id: &AuthorizationId,
    failure: SettlementFailure,
    now: Timestamp,
) -> Result<bool> {
    let Some(Stored { row, record, .. }) = rows::pending(db, id).await? else { return Ok(false) };
    if let Some(left) = decision::gives_back_gas_place(&record, None) {
        places::set(db, row, None).await?;
        places::give_back(db, id.chain_id, left).await?;
    }
    states::set(db, row, AuthorizationState::Failed { failure, at: now }).await?;
    Ok(true)
}

/// Makes an authorization that has failed pending again, claimed until `until`.
pub async fn reopen(
    db: &mut dyn Executor,
    id: &AuthorizationId,
    until: Timestamp,
) -> Result<Option<AuthorizationRecord>> {
    let failed = |stored: &Stored| matches!(stored.record.state, AuthorizationState::Failed { .. });
    let Some(Stored { row, record, .. }) = rows::by_id(db, id).await?.filter(failed) else { return Ok(None) };
    let state = AuthorizationState::Pending;
    states::set(db, row, state).await?;
    claims::set(db, &[row], until).await?;
    Ok(Some(AuthorizationRecord { state, ..record }))
}
