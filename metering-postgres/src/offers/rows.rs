//! Reads authorizations with their transactions, in one statement.

use metering_core::Timestamp;
use metering_core::chains::{Address, TxHash, TxRef, WalletSignature};
use metering_core::charging::Fingerprint;
use metering_core::offers::{
    Authorization, AuthorizationId, AuthorizationNonce, AuthorizationRecord, AuthorizationState, GasPlace,
    IdentifierHash, SettlementFailure, SignedAuthorization, Submission,
};
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::error::{Failure, Result, corrupt};
use crate::rows::{Values, address, amount, bytes, first, optional_bytes, optional_tx, parsed, timestamp, units};
use crate::transactions::serialized::SerializedWrite;

/// The columns that [`record`] reads.
pub(crate) const COLUMNS: &str = "x.id, x.chain_id, x.token, x.payer, x.nonce, x.recipient, x.amount, x.valid_after, \
     x.valid_before, x.signature, a.org_id, x.credits, x.request, x.received_at, x.state, x.failure, x.failed_at, \
     x.tx_chain_id, x.tx_hash, x.gas_wallet, x.gas_nonce, s.hashes, s.raws, s.times, x.identifier";

/// The tables of [`COLUMNS`].
pub(crate) const TABLES: &str = "payment_authorization x JOIN account a ON a.id = x.account CROSS JOIN LATERAL ( \
       SELECT array_agg(hash ORDER BY number) AS hashes, array_agg(raw ORDER BY number) AS raws, \
         array_agg(signed_at ORDER BY number) AS times \
       FROM authorization_submission WHERE payment_authorization = x.id) s";

/// The query for the authorizations that meet a condition.
pub(crate) fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM {TABLES} WHERE {condition}")
}

/// The condition for one authorization, by its id in `$1` to `$4`.
pub(crate) const BY_ID: &str = "x.chain_id = $1 AND x.token = $2 AND x.payer = $3 AND x.nonce = $4";

/// An authorization and its row number.
pub(crate) async fn by_id<C: GenericClient>(
    client: &C,
    id: &AuthorizationId,
) -> Result<Option<(i64, AuthorizationRecord)>> {
    let values: Values<'_> = &[
        &id.chain_id.cast_signed(),
        &id.token.as_bytes().as_slice(),
        &id.payer.as_bytes().as_slice(),
        &id.nonce.as_bytes().as_slice(),
    ];
    first(client, &select(BY_ID), values).await?.as_ref().map(record).transpose()
}

/// The authorization of this payer whose client gave it this id, and its row number.
pub(crate) async fn by_identifier<C: GenericClient>(
    client: &C,
    payer: &Address,
    identifier: &IdentifierHash,
) -> Result<Option<(i64, AuthorizationRecord)>> {
    let values: Values<'_> = &[&payer.as_bytes().as_slice(), &identifier.as_bytes().as_slice()];
    first(client, &select("x.payer = $1 AND x.identifier = $2"), values).await?.as_ref().map(record).transpose()
}

/// The authorization that was credited for this transaction, and its row number.
pub(crate) async fn by_tx<C: GenericClient>(client: &C, tx: TxRef) -> Result<Option<(i64, AuthorizationRecord)>> {
    let values: Values<'_> = &[&tx.hash.as_bytes().as_slice(), &tx.chain_id.cast_signed()];
    first(client, &select("x.tx_hash = $1 AND x.tx_chain_id = $2"), values).await?.as_ref().map(record).transpose()
}

/// Like [`by_id`], but only if it is pending.
pub(super) async fn pending(
    write: &SerializedWrite<'_>,
    id: &AuthorizationId,
) -> Result<Option<(i64, AuthorizationRecord)>> {
    let found = by_id(write.client(), id).await?;
    Ok(found.filter(|(_, record)| record.state == AuthorizationState::Pending))
}

/// Reads an authorization and its row number.
pub(crate) fn record(row: &Row) -> Result<(i64, AuthorizationRecord)> {
    let number = |index: usize| Ok::<_, Failure>(row.try_get::<_, i64>(index)?.cast_unsigned());
    let authorization = Authorization {
        from: address(row, 3)?,
        to: address(row, 5)?,
        value: units(row, 6)?,
        valid_after: number(7)?,
        valid_before: number(8)?,
        nonce: AuthorizationNonce::from_bytes(bytes(row, 4)?),
    };
    let signature = WalletSignature::from_bytes(row.try_get(9)?);
    let signature = signature.map_err(|_| corrupt("payment_authorization.signature has a wrong length"))?;
    let record = AuthorizationRecord {
        signed: SignedAuthorization { chain_id: number(1)?, token: address(row, 2)?, authorization, signature },
        account: parsed(row, 10)?,
        credits: amount(row, 11)?,
        request: optional_bytes(row, 12)?.map(Fingerprint::from_bytes),
        identifier: optional_bytes(row, 24)?.map(IdentifierHash::from_bytes),
        received_at: timestamp(row, 13)?,
        state: state(row)?,
        tx: optional_tx(row, 17)?,
        gas: gas_place(row)?,
        submissions: submissions(row)?,
    };
    Ok((row.try_get(0)?, record))
}

fn state(row: &Row) -> Result<AuthorizationState> {
    let unknown = |name: &str| corrupt(format_args!("unknown state or failure {name:?} of an authorization"));
    match row.try_get(14)? {
        "pending" => Ok(AuthorizationState::Pending),
        "credited" => Ok(AuthorizationState::Credited),
        "failed" => {
            let name: &str = row.try_get(15)?;
            let failure = SettlementFailure::from_name(name).ok_or_else(|| unknown(name))?;
            Ok(AuthorizationState::Failed { failure, at: timestamp(row, 16)? })
        }
        name => Err(unknown(name)),
    }
}

/// State, failure and time of the failure, as their columns store them.
pub(crate) const fn state_columns(state: AuthorizationState) -> (&'static str, Option<&'static str>, Option<i64>) {
    match state {
        AuthorizationState::Pending => ("pending", None, None),
        AuthorizationState::Credited => ("credited", None, None),
        AuthorizationState::Failed { failure, at } => ("failed", Some(failure.as_str()), Some(at.unix_millis())),
    }
}

fn gas_place(row: &Row) -> Result<Option<GasPlace>> {
    let Some(nonce) = optional_bytes(row, 20)? else { return Ok(None) };
    Ok(Some(GasPlace { wallet: address(row, 19)?, nonce: u64::from_be_bytes(nonce) }))
}

/// The transactions of an authorization. The columns are NULL if there are none.
fn submissions(row: &Row) -> Result<Vec<Submission>> {
    let Some(hashes) = row.try_get::<_, Option<Vec<&[u8]>>>(21)? else { return Ok(Vec::new()) };
    let (raws, times): (Vec<Vec<u8>>, Vec<i64>) = (row.try_get(22)?, row.try_get(23)?);
    let read = |((hash, raw), signed_at): ((&[u8], Vec<u8>), i64)| {
        let hash = hash.try_into().map_err(|_| corrupt("authorization_submission.hash has a wrong length"))?;
        Ok(Submission { hash: TxHash::from_bytes(hash), raw, signed_at: Timestamp::from_unix_millis(signed_at) })
    };
    hashes.into_iter().zip(raws).zip(times).map(read).collect()
}
