//! The rows of authorizations. None is ever deleted, so that an authorization credits one account once.

use std::time::Duration;

use metering_core::Timestamp;
use metering_core::backend::decision::{self, Decided};
use metering_core::charging::Fingerprint;
use metering_core::offers::{
    Authorization, AuthorizationId, AuthorizationRecord, AuthorizationState, IdentifierHash, SettlementFailure,
    SignedAuthorization,
};
use metering_core::store::{AuthorizationCredited, AuthorizationOpened, NewAuthorization, PaymentCredit};
use metering_sql::{now, payments};
use rusqlite::{Connection, params};

use crate::access::accounts;
use crate::error::{Result, store_error};
use crate::journal::Snapshot;
use crate::offers::claims::set_claim;
use crate::offers::places;
use crate::offers::rows::{by_id, by_identifier, pending};
use crate::rows::units_column;
use crate::script::Statements;

/// Stores an accepted authorization, claimed for `lease`.
pub(crate) fn open(snapshot: &Snapshot<'_>, new: NewAuthorization, lease: Duration) -> Result<AuthorizationOpened> {
    let known = by_id(snapshot, &new.signed.id())?.map(|(_, record)| record);
    let payer = &new.signed.authorization.from;
    let same = new.identifier.map(|identifier| by_identifier(snapshot, payer, &identifier)).transpose()?.flatten();
    let account = accounts::by_id(snapshot, &new.account)?;
    match decision::open_authorization(new, known, same.is_some(), account) {
        Decided::Accepted((account, record)) => {
            let claimed_until = record.received_at.saturating_add(lease);
            insert(snapshot, account, &record, claimed_until).map_err(store_error)?;
            Ok(AuthorizationOpened::Opened(record))
        }
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Inserts a new record: it is pending, without a place and without transactions.
fn insert(
    connection: &Connection,
    account: i64,
    record: &AuthorizationRecord,
    claimed_until: Timestamp,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO payment_authorization (chain_id, token, payer, nonce, recipient, amount, valid_after, valid_before, \
                 signature, account, credits, request, received_at, claimed_until, identifier, state) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 'pending')";
    let SignedAuthorization { chain_id, token, authorization, signature } = &record.signed;
    let Authorization { from, to, value, valid_after, valid_before, nonce } = authorization;
    let values = params![
        chain_id.cast_signed(),
        token.as_bytes(),
        from.as_bytes(),
        nonce.as_bytes(),
        to.as_bytes(),
        units_column(*value),
        valid_after.cast_signed(),
        valid_before.cast_signed(),
        signature.as_bytes(),
        account,
        record.credits.atoms(),
        record.request.as_ref().map(Fingerprint::as_bytes),
        record.received_at.unix_millis(),
        claimed_until.unix_millis(),
        record.identifier.as_ref().map(IdentifierHash::as_bytes),
    ];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

/// Credits an executed authorization.
pub(crate) fn credit(
    snapshot: &Snapshot<'_>,
    id: &AuthorizationId,
    credit: PaymentCredit,
) -> Result<AuthorizationCredited> {
    let (row, record) = by_id(snapshot, id)?.unzip();
    let (tx, facts) = (credit.payment.tx, now(payments::credit_facts(&mut Statements::new(snapshot), &credit))?);
    let changes = match decision::credit_authorization(credit, record, facts) {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    let account = now(payments::write_credit(&mut Statements::new(snapshot), changes))?;
    let sql = "UPDATE payment_authorization SET state = 'credited', tx_chain_id = ?2, tx_hash = ?3 WHERE id = ?1";
    let values = params![row, tx.chain_id.cast_signed(), tx.hash.as_bytes()];
    snapshot.prepare_cached(sql).and_then(|mut s| s.execute(values)).map_err(store_error)?;
    Ok(AuthorizationCredited::Account(account))
}

/// Records that a pending authorization cannot be executed. Returns whether it was pending.
pub(crate) fn fail(
    snapshot: &Snapshot<'_>,
    id: &AuthorizationId,
    failure: SettlementFailure,
    now: Timestamp,
) -> Result<bool> {
    let Some((row, record)) = pending(snapshot, id)? else { return Ok(false) };
    if let Some(left) = decision::gives_back_gas_place(&record, None) {
        places::set(snapshot, row, None)?;
        places::give_back(snapshot, id.chain_id, left)?;
    }
    set_state(snapshot, row, AuthorizationState::Failed { failure, at: now })?;
    Ok(true)
}

/// Makes an authorization that has failed pending again, claimed until `until`.
pub(crate) fn reopen(
    snapshot: &Snapshot<'_>,
    id: &AuthorizationId,
    until: Timestamp,
) -> Result<Option<AuthorizationRecord>> {
    let failed = |record: &AuthorizationRecord| matches!(record.state, AuthorizationState::Failed { .. });
    let Some((row, record)) = by_id(snapshot, id)?.filter(|(_, record)| failed(record)) else { return Ok(None) };
    let state = AuthorizationState::Pending;
    set_state(snapshot, row, state)?;
    set_claim(snapshot, row, until)?;
    Ok(Some(AuthorizationRecord { state, ..record }))
}

fn set_state(snapshot: &Snapshot<'_>, row: i64, state: AuthorizationState) -> Result<()> {
    now(metering_sql::authorizations::set_state(&mut Statements::new(snapshot), row, state))
}
