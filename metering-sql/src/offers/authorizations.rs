//! Stores authorizations, each once, and their outcomes.

use std::cmp::Reverse;
use std::time::Duration;

use metering_core::backend::decision::{self, Decided};
use metering_core::chains::{Address, TxRef};
use metering_core::offers::{
    AuthorizationId, AuthorizationRecord, AuthorizationState, IdentifierHash, SettlementFailure,
};
use metering_core::store::{AuthorizationCredited, AuthorizationOpened, NewAuthorization, PaymentCredit};
use metering_core::{Credits, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::offers::rows::Stored;
use crate::offers::{claims, places, rows, states};
use crate::{accounts, numbered, payments, values};

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

/// The authorizations of a payer for usage that are pending, or were not paid.
pub async fn unsettled_usage(db: &mut dyn Executor, payer: &Address) -> Result<Vec<AuthorizationRecord>> {
    let mut found = rows::all(db, rows::OPEN_USAGE, &values![payer]).await?;
    found.extend(rows::all(db, rows::UNPAID_OF_PAYER, &values![payer]).await?);
    Ok(found)
}

/// The newest authorizations for usage that were not paid, newest first, at most `limit`.
pub async fn unpaid_usage(db: &mut dyn Executor, limit: u32) -> Result<Vec<AuthorizationRecord>> {
    let mut found = rows::all(db, &rows::unpaid(limit), &[]).await?;
    let at = |record: &AuthorizationRecord| match record.state {
        AuthorizationState::Failed { at, .. } => at,
        AuthorizationState::Pending | AuthorizationState::Credited => record.received_at,
    };
    found.sort_by_key(|record| Reverse(at(record)));
    Ok(found)
}

/// Stores an accepted authorization, claimed for `lease`.
pub async fn open(db: &mut dyn Executor, new: &NewAuthorization, lease: Duration) -> Result<AuthorizationOpened> {
    let known = by_id(db, &new.signed.id()).await?;
    let same = match &new.identifier {
        Some(identifier) => rows::by_identifier(db, &new.signed.authorization.from, identifier).await?,
        None => None,
    };
    // Writes run one at a time, so nothing revokes or closes the account until the transaction ends.
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

/// Records the usage of a pending authorization's request. The record after that; `None`, and nothing changes, when
/// that is recorded already, or it is not pending.
pub async fn set_used(
    db: &mut dyn Executor,
    id: &AuthorizationId,
    used: Credits,
    now: Timestamp,
) -> Result<Option<AuthorizationRecord>> {
    let Some(Stored { row, record, .. }) = rows::pending(db, id).await? else { return Ok(None) };
    let Some(after) = decision::use_authorization(record, used, now) else { return Ok(None) };
    states::set_used(db, row, &after).await?;
    Ok(Some(after))
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
