//! Rows of authorizations, with their transactions. None is ever deleted, so that an authorization credits one account
//! once.

use std::collections::BTreeMap;

use metering_core::Timestamp;
use metering_core::chains::{Address, TxRef};
use metering_core::charging::HoldId;
use metering_core::offers::{
    Authorization, AuthorizationId, AuthorizationRecord, AuthorizationState, AuthorizedUsage, GasPlace, IdentifierHash,
    SignedAuthorization, Submission,
};

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::offers::stored_place::StoredPlace;
use crate::record::Record;
use crate::row::{Reader, Row, only};
use crate::table::Column::{self, Account, Own, Place};
use crate::table::Table;
use crate::value::Value;
use crate::values;

/// The end of the claim is last, because it is not part of a record.
const COLUMNS: &[Column] = &[
    Own("chain_id"),
    Own("token"),
    Own("payer"),
    Own("nonce"),
    Own("recipient"),
    Own("amount"),
    Own("valid_after"),
    Own("valid_before"),
    Own("signature"),
    Account("account"),
    Own("credits"),
    Own("request"),
    Own("received_at"),
    Own("state"),
    Own("failure"),
    Own("failed_at"),
    Own("tx_chain_id"),
    Own("tx_hash"),
    Own("gas_wallet"),
    Place("gas_nonce"),
    Own("identifier"),
    Own("usage_hold"),
    Own("used_credits"),
    Own("claimed_until"),
];

/// Without its transactions, which are in a separate table. To be read only: a row needs the end of its claim.
impl Record for AuthorizationRecord {
    const TABLE: Table = Table {
        name: "payment_authorization",
        key: &["chain_id", "token", "payer", "nonce"],
        columns: COLUMNS.split_at(23).0,
    };

    fn values(&self) -> Result<Vec<Value>> {
        let SignedAuthorization { chain_id, token, authorization, signature } = &self.signed;
        let Authorization { from, to, value, valid_after, valid_before, nonce } = authorization;
        let mut values = values![chain_id, token, from, nonce, to, value, valid_after, valid_before, signature];
        values.extend(values![self.account, self.credits, self.request, self.received_at]);
        values.extend(state_values(self.state));
        values.extend(values![self.tx.map(|tx| tx.chain_id), self.tx.map(|tx| tx.hash)]);
        let (wallet, nonce) = (self.gas.map(|place| place.wallet), self.gas.map(|place| StoredPlace(place.nonce)));
        values.extend(values![wallet, nonce, self.identifier]);
        values.extend(values![self.usage.map(|usage| usage.hold), self.usage.and_then(|usage| usage.used)]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (chain_id, token, from, nonce) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let (to, value, valid_after, valid_before) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let authorization = Authorization { from, to, value, valid_after, valid_before, nonce };
        let signed = SignedAuthorization { chain_id, token, authorization, signature: row.next()? };
        let (account, credits, request, received_at) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let (state, tx) = (state(row)?, row.optional_tx()?);
        // The schema ensures that both are set or neither is.
        let place: (Option<Address>, Option<StoredPlace>) = (row.next()?, row.next()?);
        let gas = place.0.zip(place.1).map(|(wallet, StoredPlace(nonce))| GasPlace { wallet, nonce });
        let (identifier, hold, used): (_, Option<HoldId>, _) = (row.next()?, row.next()?, row.next()?);
        let (usage, submissions) = (hold.map(|hold| AuthorizedUsage { hold, used }), Vec::new());
        Ok(Self { signed, account, credits, request, identifier, received_at, state, tx, gas, submissions, usage })
    }
}

/// An authorization without its transactions, and the end of its claim.
impl Record for (AuthorizationRecord, Timestamp) {
    const TABLE: Table = Table { columns: COLUMNS, ..AuthorizationRecord::TABLE };

    fn values(&self) -> Result<Vec<Value>> {
        let (record, claimed_until) = self;
        let mut values = record.values()?;
        values.extend(values![claimed_until]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        Ok((AuthorizationRecord::read(row)?, row.next()?))
    }
}

/// The columns of a state: its name, the failure, and since when.
pub(crate) fn state_values(state: AuthorizationState) -> Vec<Value> {
    let (name, failure, failed_at) = match state {
        AuthorizationState::Pending => ("pending", None, None),
        AuthorizationState::Credited => ("credited", None, None),
        AuthorizationState::Failed { failure, at } => ("failed", Some(failure), Some(at)),
    };
    values![name, failure, failed_at]
}

/// The schema ensures that a failed one, and no other, has a failure and its time.
fn state(row: &mut Reader<'_>) -> Result<AuthorizationState> {
    let (name, failure, at): (String, _, _) = (row.next()?, row.next()?, row.next()?);
    match (name.as_str(), failure, at) {
        ("pending", None, None) => Ok(AuthorizationState::Pending),
        ("credited", None, None) => Ok(AuthorizationState::Credited),
        ("failed", Some(failure), Some(at)) => Ok(AuthorizationState::Failed { failure, at }),
        _ => {
            Err(corrupt(format_args!("payment_authorization.state: {name:?} is unknown or does not match the failure")))
        }
    }
}

/// The condition for the authorization with an id.
pub const BY_ID: &str = "chain_id = ?1 AND token = ?2 AND payer = ?3 AND nonce = ?4";

/// The condition for the one that was credited for a transaction.
pub const BY_TX: &str = "tx_hash = ?1 AND tx_chain_id = ?2";

/// The condition for the one of a payer whose client gave it an id.
pub const BY_IDENTIFIER: &str = "payer = ?1 AND identifier = ?2";

/// The condition for those of a payer that pay for usage and may still be executed.
pub const OPEN_USAGE: &str = "payer = ?1 AND usage_hold IS NOT NULL AND state = 'pending'";

/// The condition for those of a payer that pay for usage and were not paid.
pub const UNPAID_OF_PAYER: &str = "payer = ?1 AND used_credits > 0 AND state = 'failed'";

/// The condition for those that pay for usage and were not paid, the newest `limit`. The limit is a literal, as in
/// [`from`].
#[must_use]
pub fn unpaid(limit: u32) -> String {
    format!(
        "payment_authorization.id IN (SELECT p.id FROM payment_authorization p \
           WHERE p.used_credits > 0 AND p.state = 'failed' ORDER BY p.failed_at DESC, p.id DESC LIMIT {limit})"
    )
}

/// An authorization with its transactions.
#[derive(Debug)]
pub struct Stored {
    /// Its row number.
    pub(crate) row: i64,
    pub(crate) record: AuthorizationRecord,
    pub(crate) claimed_until: Timestamp,
    /// The number of its next transaction.
    pub(crate) next_number: i64,
}

/// The query for the authorizations that match: their row numbers and columns, and in a row each their transactions.
#[must_use]
pub fn select(condition: &str) -> String {
    format!(
        "SELECT payment_authorization.id, {}, s.number, s.hash, s.raw, s.signed_at FROM payment_authorization \
         LEFT JOIN authorization_submission s ON s.payment_authorization = payment_authorization.id WHERE {condition}",
        <(AuthorizationRecord, Timestamp)>::TABLE.column_list()
    )
}

/// The first column of a transaction in [`select`].
const SUBMISSION: usize = COLUMNS.len() + 1;

/// The rows of each authorization that matches, by its row number.
pub(crate) async fn rows(db: &mut dyn Executor, condition: &str, values: &[Value]) -> Result<BTreeMap<i64, Vec<Row>>> {
    let mut found: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
    for row in db.query(&select(condition), values).await? {
        found.entry(row.get(0)?).or_default().push(row);
    }
    Ok(found)
}

/// Reads an authorization from its rows.
pub(crate) fn read(rows: &[Row]) -> Result<Stored> {
    let first = only(rows)?;
    let (record, claimed_until) = <(AuthorizationRecord, Timestamp)>::of_row_at(first, 1)?;
    let submissions = rows.iter().map(submission).collect::<Result<Vec<_>>>()?;
    let submissions: BTreeMap<i64, Submission> = submissions.into_iter().flatten().collect();
    let next_number = submissions.last_key_value().map_or(0, |(last, _)| last + 1);
    let record = AuthorizationRecord { submissions: submissions.into_values().collect(), ..record };
    Ok(Stored { row: first.get(0)?, record, claimed_until, next_number })
}

/// The transaction of a row, and its number, unless its authorization has none.
fn submission(row: &Row) -> Result<Option<(i64, Submission)>> {
    let Some(number) = row.get(SUBMISSION)? else { return Ok(None) };
    let (hash, raw, signed_at) = (row.get(SUBMISSION + 1)?, row.get(SUBMISSION + 2)?, row.get(SUBMISSION + 3)?);
    Ok(Some((number, Submission { hash, raw, signed_at })))
}

/// The records that match, oldest row first.
pub(crate) async fn all(db: &mut dyn Executor, condition: &str, values: &[Value]) -> Result<Vec<AuthorizationRecord>> {
    rows(db, condition, values).await?.values().map(|rows| read(rows).map(|stored| stored.record)).collect()
}

/// Whether a transaction was signed for one of a payer's pending authorizations for usage. It pays for that alone: its
/// request was served before.
pub(crate) async fn is_for_usage(db: &mut dyn Executor, payer: &Address, tx: TxRef) -> Result<bool> {
    let open = all(db, OPEN_USAGE, &values![payer]).await?;
    let of_chain = open.iter().filter(|record| record.signed.chain_id == tx.chain_id);
    Ok(of_chain.flat_map(|record| &record.submissions).any(|submission| submission.hash == tx.hash))
}

async fn one(db: &mut dyn Executor, condition: &str, values: &[Value]) -> Result<Option<Stored>> {
    rows(db, condition, values).await?.values().next().map(|rows| read(rows)).transpose()
}

/// The values of [`BY_ID`].
pub(crate) fn id_values(id: &AuthorizationId) -> Vec<Value> {
    values![id.chain_id, id.token, id.payer, id.nonce]
}

/// The condition for `count` authorizations by id, starting with a given one. The limit is a literal: with an unknown
/// limit PostgreSQL would plan for a large one.
#[must_use]
pub fn from(count: usize) -> String {
    format!(
        "payment_authorization.id IN (SELECT p.id FROM payment_authorization p \
           WHERE (p.chain_id, p.token, p.payer, p.nonce) >= (?1, ?2, ?3, ?4) \
           ORDER BY p.chain_id, p.token, p.payer, p.nonce LIMIT {count})"
    )
}

/// Reads `count` authorizations by id, starting with a given one.
pub(crate) async fn page(
    db: &mut dyn Executor,
    first: &AuthorizationId,
    count: usize,
) -> Result<BTreeMap<AuthorizationId, AuthorizationRecord>> {
    let found = rows(db, &from(count), &id_values(first)).await?;
    let record = |rows: &Vec<Row>| read(rows).map(|stored| (stored.record.signed.id(), stored.record));
    found.values().map(record).collect()
}

/// The authorization with this id.
pub async fn by_id(db: &mut dyn Executor, id: &AuthorizationId) -> Result<Option<Stored>> {
    one(db, BY_ID, &id_values(id)).await
}

/// The authorization with this id, if it is pending.
pub(crate) async fn pending(db: &mut dyn Executor, id: &AuthorizationId) -> Result<Option<Stored>> {
    Ok(by_id(db, id).await?.filter(|stored| stored.record.state == AuthorizationState::Pending))
}

/// The authorization that was credited for this transaction.
pub async fn by_tx(db: &mut dyn Executor, tx: TxRef) -> Result<Option<Stored>> {
    one(db, BY_TX, &values![tx.hash, tx.chain_id]).await
}

/// The authorization of this payer whose client gave it this id.
pub async fn by_identifier(
    db: &mut dyn Executor,
    payer: &Address,
    identifier: &IdentifierHash,
) -> Result<Option<Stored>> {
    one(db, BY_IDENTIFIER, &values![payer, identifier]).await
}
