//! Imports authorizations with their transactions, and the places of these.

use metering_core::Timestamp;
use metering_core::offers::{AuthorizationRecord, AuthorizationState};
use metering_core::transfer::{GasPlacesRecord, Record};

use super::books::{column, of_kind};
use crate::error::Result;
use crate::rows::{execute, units_column};
use crate::transactions::serialized::SerializedWrite;

/// A claim ended when its authorization was received, so a pending one is free, and the oldest is claimed first.
const AUTHORIZATIONS: &str = "INSERT INTO payment_authorization (id, chain_id, token, payer, nonce, recipient, amount, \
     valid_after, valid_before, signature, account, credits, request, received_at, claimed_until, state, failure, \
     failed_at, tx_chain_id, tx_hash, gas_wallet, gas_nonce, identifier) \
     SELECT new.id, new.chain_id, new.token, new.payer, new.nonce, new.recipient, new.amount, new.valid_after, \
     new.valid_before, new.signature, a.id, new.credits, new.request, new.received_at, new.received_at, new.state, \
     new.failure, new.failed_at, new.tx_chain_id, new.tx_hash, new.gas_wallet, new.gas_nonce, new.identifier \
     FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BYTEA[], $4::BYTEA[], $5::BYTEA[], $6::BYTEA[], $7::BYTEA[], \
     $8::BIGINT[], $9::BIGINT[], $10::BYTEA[], $11::TEXT[], $12::BIGINT[], $13::BYTEA[], $14::BIGINT[], $15::TEXT[], \
     $16::TEXT[], $17::BIGINT[], $18::BIGINT[], $19::BYTEA[], $20::BYTEA[], $21::BYTEA[], $22::BYTEA[]) \
     AS new (id, chain_id, token, payer, nonce, recipient, amount, valid_after, valid_before, signature, org_id, \
     credits, request, received_at, state, failure, failed_at, tx_chain_id, tx_hash, gas_wallet, gas_nonce, \
     identifier) \
     JOIN account a ON a.org_id = new.org_id";

const SUBMISSIONS: &str = "INSERT INTO authorization_submission (payment_authorization, number, hash, raw, signed_at) \
     SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BYTEA[], $4::BYTEA[], $5::BIGINT[])";

const GAS_PLACES: &str =
    "INSERT INTO gas_place (chain_id, wallet, next) SELECT * FROM unnest($1::BIGINT[], $2::BYTEA[], $3::BYTEA[])";

const FREE_PLACES: &str =
    "INSERT INTO free_gas_place (chain_id, wallet, nonce) SELECT * FROM unnest($1::BIGINT[], $2::BYTEA[], $3::BYTEA[])";

pub(super) async fn authorizations(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&AuthorizationRecord> =
        of_kind!(records, Authorization).into_iter().map(|record| &**record).collect();
    let rows = write.next_ids(records.len()).await?;
    let amounts = column!(records, record => units_column(record.signed.authorization.value));
    let states = column!(records, record => state_columns(record.state));
    let nonces = column!(records, record => record.gas.map(|place| place.nonce.to_be_bytes()));
    let written = execute(
        write.client(),
        AUTHORIZATIONS,
        &[
            &rows,
            &column!(records, record => record.signed.chain_id.cast_signed()),
            &column!(records, record => record.signed.token.as_bytes().as_slice()),
            &column!(records, record => record.signed.authorization.from.as_bytes().as_slice()),
            &column!(records, record => record.signed.authorization.nonce.as_bytes().as_slice()),
            &column!(records, record => record.signed.authorization.to.as_bytes().as_slice()),
            &column!(amounts, amount => amount.as_slice()),
            &column!(records, record => record.signed.authorization.valid_after.cast_signed()),
            &column!(records, record => record.signed.authorization.valid_before.cast_signed()),
            &column!(records, record => record.signed.signature.as_bytes()),
            &column!(records, record => record.account.as_str()),
            &column!(records, record => record.credits.atoms()),
            &column!(records, record => record.request.as_ref().map(|request| request.as_bytes().as_slice())),
            &column!(records, record => record.received_at.unix_millis()),
            &column!(states, state => state.0),
            &column!(states, state => state.1),
            &column!(states, state => state.2),
            &column!(records, record => record.tx.map(|tx| tx.chain_id.cast_signed())),
            &column!(records, record => record.tx.as_ref().map(|tx| tx.hash.as_bytes().as_slice())),
            &column!(records, record => record.gas.as_ref().map(|place| place.wallet.as_bytes().as_slice())),
            &column!(nonces, nonce => nonce.as_ref().map(<[u8; 8]>::as_slice)),
            &column!(records, record => record.identifier.as_ref().map(|identifier| identifier.as_bytes().as_slice())),
        ],
    )
    .await?;
    submissions(write, &rows, &records).await?;
    Ok(written)
}

/// State, failure and time of the failure, as their columns store them.
const fn state_columns(state: AuthorizationState) -> (&'static str, Option<&'static str>, Option<i64>) {
    match state {
        AuthorizationState::Pending => ("pending", None, None),
        AuthorizationState::Credited => ("credited", None, None),
        AuthorizationState::Failed { failure, at } => ("failed", Some(failure.as_str()), Some(at.unix_millis())),
    }
}

/// Imports the transactions of authorizations with these row numbers.
async fn submissions(write: &SerializedWrite<'_>, rows: &[i64], records: &[&AuthorizationRecord]) -> Result<()> {
    let numbered = rows.iter().zip(records).flat_map(|(row, record)| {
        (1_i64..).zip(&record.submissions).map(|(number, submission)| (*row, number, submission))
    });
    let numbered: Vec<_> = numbered.collect();
    execute(
        write.client(),
        SUBMISSIONS,
        &[
            &column!(numbered, (row, ..) => *row),
            &column!(numbered, (_, number, _) => *number),
            &column!(numbered, (.., submission) => submission.hash.as_bytes().as_slice()),
            &column!(numbered, (.., submission) => submission.raw.as_slice()),
            &column!(numbered, (.., submission) => Timestamp::unix_millis(submission.signed_at)),
        ],
    )
    .await
    .map(drop)
}

pub(super) async fn gas_places(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&GasPlacesRecord> = of_kind!(records, GasPlaces);
    let next = column!(records, places => places.next.to_be_bytes());
    let written = execute(
        write.client(),
        GAS_PLACES,
        &[
            &column!(records, places => places.chain_id.cast_signed()),
            &column!(records, places => places.wallet.as_bytes().as_slice()),
            &column!(next, next => next.as_slice()),
        ],
    )
    .await?;
    let free: Vec<_> = records
        .iter()
        .flat_map(|places| places.given_back.iter().map(move |nonce| (places, nonce.to_be_bytes())))
        .collect();
    execute(
        write.client(),
        FREE_PLACES,
        &[
            &column!(free, (places, _) => places.chain_id.cast_signed()),
            &column!(free, (places, _) => places.wallet.as_bytes().as_slice()),
            &column!(free, (_, nonce) => nonce.as_slice()),
        ],
    )
    .await?;
    Ok(written)
}
