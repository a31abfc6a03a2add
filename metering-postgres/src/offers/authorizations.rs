//! Stores authorizations, each once, and credits them.

use std::time::Duration;

use metering_core::backend::decision::{self, Decided};
use metering_core::offers::{AuthorizationId, AuthorizationRecord};
use metering_core::store::{AuthorizationCredited, AuthorizationOpened, NewAuthorization, PaymentCredit};
use metering_sql::payments;

use super::rows::{by_id, by_identifier};
use super::states;
use crate::access::accounts;
use crate::error::Result;
use crate::rows::{Values, execute, units_column};
use crate::script::Statements;
use crate::transactions::serialized::SerializedWrite;

/// Stores an accepted authorization, claimed for `lease`.
pub(crate) async fn open(
    write: &SerializedWrite<'_>,
    new: NewAuthorization,
    lease: Duration,
) -> Result<AuthorizationOpened> {
    let known = by_id(write.client(), &new.signed.id()).await?.map(|(_, record)| record);
    let same = match &new.identifier {
        Some(identifier) => by_identifier(write.client(), &new.signed.authorization.from, identifier).await?,
        None => None,
    };
    let account = accounts::by_id(write.client(), &new.account).await?;
    match decision::open_authorization(new, known, same.is_some(), account) {
        Decided::Accepted((row, record)) => {
            insert(write, row, &record, lease).await?;
            Ok(AuthorizationOpened::Opened(record))
        }
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Inserts a pending authorization. `account` is the row number of its account.
async fn insert(
    write: &SerializedWrite<'_>,
    account: i64,
    record: &AuthorizationRecord,
    lease: Duration,
) -> Result<()> {
    let sql = "INSERT INTO payment_authorization (id, chain_id, token, payer, nonce, recipient, amount, valid_after, \
               valid_before, signature, account, credits, request, received_at, claimed_until, identifier, state) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, 'pending')";
    let (row, signed) = (write.next_id().await?, &record.signed);
    let amount = units_column(signed.authorization.value);
    let values: Values<'_> = &[
        &row,
        &signed.chain_id.cast_signed(),
        &signed.token.as_bytes().as_slice(),
        &signed.authorization.from.as_bytes().as_slice(),
        &signed.authorization.nonce.as_bytes().as_slice(),
        &signed.authorization.to.as_bytes().as_slice(),
        &amount.as_slice(),
        &signed.authorization.valid_after.cast_signed(),
        &signed.authorization.valid_before.cast_signed(),
        &signed.signature.as_bytes(),
        &account,
        &record.credits.atoms(),
        &record.request.as_ref().map(|request| request.as_bytes().as_slice()),
        &record.received_at.unix_millis(),
        &record.received_at.saturating_add(lease).unix_millis(),
        &record.identifier.as_ref().map(|identifier| identifier.as_bytes().as_slice()),
    ];
    execute(write.client(), sql, values).await.map(drop)
}

/// Credits an executed authorization: writes what a payment's credit writes, and its new state.
pub(crate) async fn credit(
    write: &SerializedWrite<'_>,
    id: &AuthorizationId,
    credit: PaymentCredit,
) -> Result<AuthorizationCredited> {
    let facts = payments::credit_facts(&mut Statements(write.client()), &credit).await?;
    let (row, record) = by_id(write.client(), id).await?.unzip();
    let (row, changes) = match (row, decision::credit_authorization(credit, record, facts)) {
        (_, Decided::Refused(refusal)) => return Ok(refusal),
        // Without a record, there is nothing to credit.
        (None, Decided::Accepted(_)) => return Ok(AuthorizationCredited::NoSuchAccount),
        (Some(row), Decided::Accepted(changes)) => (row, changes),
    };
    let tx = changes.record.payment.tx;
    let account = payments::write_credit(&mut Statements(write.client()), changes).await?;
    states::credited(write, row, tx).await?;
    Ok(AuthorizationCredited::Account(account))
}
