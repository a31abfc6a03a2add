//! Reads authorizations with their transactions.

use metering_core::chains::{Address, TxHash, TxRef, WalletSignature};
use metering_core::charging::Fingerprint;
use metering_core::offers::{
    Authorization, AuthorizationId, AuthorizationNonce, AuthorizationRecord, AuthorizationState, GasPlace,
    IdentifierHash, SettlementFailure, SignedAuthorization, Submission,
};
use metering_core::{Credits, Timestamp};
use rusqlite::{Connection, Params, Row, params};

use crate::error::{Result, corrupt_column, store_error};
use crate::rows::{address, all, first, optional_tx, parse, timestamp, units};

/// The columns that [`record`] reads from [`TABLES`].
pub(crate) const COLUMNS: &str = "u.id, u.chain_id, u.token, u.payer, u.nonce, u.recipient, u.amount, u.valid_after, \
     u.valid_before, u.signature, a.org_id, u.credits, u.request, u.received_at, u.state, u.failure, u.failed_at, \
     u.tx_chain_id, u.tx_hash, u.gas_wallet, u.gas_nonce, u.identifier";

/// `CROSS JOIN` makes SQLite join in the order written.
pub(crate) const TABLES: &str = "payment_authorization u CROSS JOIN account a ON a.id = u.account";

const BY_ID: &str = "u.chain_id = ?1 AND u.token = ?2 AND u.payer = ?3 AND u.nonce = ?4";

const BY_TX: &str = "u.tx_chain_id = ?1 AND u.tx_hash = ?2";

const BY_IDENTIFIER: &str = "u.payer = ?1 AND u.identifier = ?2";

const SUBMISSIONS: &str =
    "SELECT hash, raw, signed_at FROM authorization_submission WHERE payment_authorization = ?1 ORDER BY number";

pub(super) fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM {TABLES} WHERE {condition}")
}

/// Reads the authorization that a condition of [`select`] finds, with its transactions, and its row number.
pub(super) fn one(
    connection: &Connection,
    condition: &str,
    values: impl Params,
) -> Result<Option<(i64, AuthorizationRecord)>> {
    let mut statement = connection.prepare_cached(&select(condition)).map_err(store_error)?;
    let Some((row, record)) = first(&mut statement, values, record)? else { return Ok(None) };
    let submissions = submissions(connection, row)?;
    Ok(Some((row, AuthorizationRecord { submissions, ..record })))
}

/// The authorization with this id, and its row number.
pub(crate) fn by_id(connection: &Connection, id: &AuthorizationId) -> Result<Option<(i64, AuthorizationRecord)>> {
    let AuthorizationId { chain_id, token, payer, nonce } = id;
    one(connection, BY_ID, params![chain_id.cast_signed(), token.as_bytes(), payer.as_bytes(), nonce.as_bytes()])
}

/// The authorization that was credited for this transaction, and its row number.
pub(crate) fn by_tx(connection: &Connection, tx: TxRef) -> Result<Option<(i64, AuthorizationRecord)>> {
    one(connection, BY_TX, params![tx.chain_id.cast_signed(), tx.hash.as_bytes()])
}

/// The authorization of this payer whose client gave it this id.
pub(crate) fn by_identifier(
    connection: &Connection,
    payer: &Address,
    identifier: &IdentifierHash,
) -> Result<Option<(i64, AuthorizationRecord)>> {
    one(connection, BY_IDENTIFIER, params![payer.as_bytes(), identifier.as_bytes()])
}

/// The authorization with this id, if it is pending.
pub(crate) fn pending(connection: &Connection, id: &AuthorizationId) -> Result<Option<(i64, AuthorizationRecord)>> {
    Ok(by_id(connection, id)?.filter(|(_, record)| record.state == AuthorizationState::Pending))
}

/// The transactions of the authorization with this row number, oldest first.
fn submissions(connection: &Connection, authorization: i64) -> Result<Vec<Submission>> {
    let mut statement = connection.prepare_cached(SUBMISSIONS).map_err(store_error)?;
    all(&mut statement, [authorization], |row| {
        let (hash, raw) = (TxHash::from_bytes(row.get(0)?), row.get(1)?);
        Ok(Ok(Submission { hash, raw, signed_at: timestamp(row, 2)? }))
    })
}

/// Reads a record and its row number. Its transactions are in another table ([`submissions`]).
pub(crate) fn record(row: &Row<'_>) -> rusqlite::Result<Result<(i64, AuthorizationRecord)>> {
    let number = |index| row.get::<_, i64>(index).map(i64::cast_unsigned);
    let authorization = Authorization {
        from: address(row, 3)?,
        to: address(row, 5)?,
        value: units(row, 6)?,
        valid_after: number(7)?,
        valid_before: number(8)?,
        nonce: AuthorizationNonce::from_bytes(row.get(4)?),
    };
    let (id, chain_id, token, signature): (i64, _, _, Vec<u8>) =
        (row.get(0)?, number(1)?, address(row, 2)?, row.get(9)?);
    let (org_id, credits): (String, _) = (row.get(10)?, Credits::from_atoms(row.get(11)?));
    let request = row.get::<_, Option<[u8; 16]>>(12)?.map(Fingerprint::from_bytes);
    let (received_at, state, tx) = (timestamp(row, 13)?, state(row, 14)?, optional_tx(row, 17)?);
    let gas = gas_place(row, 19)?;
    let identifier = row.get::<_, Option<[u8; 32]>>(21)?.map(IdentifierHash::from_bytes);
    let read = || {
        let signature = WalletSignature::from_bytes(signature)
            .map_err(|error| corrupt_column("payment_authorization.signature", error))?;
        let signed = SignedAuthorization { chain_id, token, authorization, signature };
        let (account, state, submissions) = (parse(&org_id)?, state?, Vec::new());
        let record = AuthorizationRecord {
            signed,
            account,
            credits,
            request,
            identifier,
            received_at,
            state,
            tx,
            gas,
            submissions,
        };
        Ok((id, record))
    };
    Ok(read())
}

/// The schema ensures that a failed one, and no other, has a failure and its time.
fn state(row: &Row<'_>, first: usize) -> rusqlite::Result<Result<AuthorizationState>> {
    let (name, failure): (String, Option<String>) = (row.get(first)?, row.get(first + 1)?);
    let at = row.get::<_, Option<i64>>(first + 2)?.map(Timestamp::from_unix_millis);
    let failure = failure.as_deref().map(SettlementFailure::from_name);
    Ok(match (name.as_str(), failure, at) {
        ("pending", None, None) => Ok(AuthorizationState::Pending),
        ("credited", None, None) => Ok(AuthorizationState::Credited),
        ("failed", Some(Some(failure)), Some(at)) => Ok(AuthorizationState::Failed { failure, at }),
        _ => Err(corrupt_column("payment_authorization.state", "it is unknown, or does not match the failure")),
    })
}

/// The schema ensures that both columns are set or neither is.
fn gas_place(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<GasPlace>> {
    let Some(nonce) = row.get::<_, Option<i64>>(first + 1)? else { return Ok(None) };
    Ok(Some(GasPlace { wallet: address(row, first)?, nonce: nonce.cast_unsigned() }))
}

/// The queries whose plans are tested, with a step of each plan.
#[cfg(test)]
pub(super) fn queries() -> [(String, &'static str); 4] {
    let id = "SEARCH u USING INDEX sqlite_autoindex_payment_authorization_1 \
              (chain_id=? AND token=? AND payer=? AND nonce=?)";
    let submissions = "SEARCH authorization_submission USING PRIMARY KEY (payment_authorization=?)";
    let tx = "SEARCH u USING INDEX payment_authorization_tx (tx_hash=? AND tx_chain_id=?)";
    let identifier = "SEARCH u USING INDEX payment_authorization_identifier (payer=? AND identifier=?)";
    [
        (select(BY_ID), id),
        (select(BY_TX), tx),
        (select(BY_IDENTIFIER), identifier),
        (SUBMISSIONS.to_owned(), submissions),
    ]
}
