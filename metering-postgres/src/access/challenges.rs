use metering_core::access::KeyHash;
use metering_core::backend::decision;
use metering_core::payments::Challenge;
use metering_core::{Account, Timestamp};

use tokio_postgres::Row;

use crate::access::accounts;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{Values, address, execute, first, parsed, timestamp, unsigned};
use crate::transactions::serialized::SerializedWrite;

/// The columns that [`challenge`] reads.
pub(crate) const COLUMNS: &str = "nonce, address, org_id, message, expires_at, failures";

/// Stores a challenge.
pub(crate) async fn open(write: &SerializedWrite<'_>, new: Challenge) -> Result<()> {
    let nonce_in_use = by_nonce(write.client(), &new.nonce).await?.is_some();
    let Challenge { nonce, address, account, message, expires_at, failures } =
        decision::open_challenge(new, nonce_in_use)?;
    let sql = "INSERT INTO challenge (nonce, address, org_id, message, expires_at, failures) \
               VALUES ($1, $2, $3, $4, $5, $6)";
    let (address, account) = (address.as_bytes().as_slice(), account.as_str());
    let values: Values<'_> = &[&nonce, &address, &account, &message, &expires_at.unix_millis(), &i64::from(failures)];
    execute(write.client(), sql, values).await.map(drop)
}

/// The challenge with this nonce, unless it is used up.
pub(crate) async fn by_nonce<C: GenericClient>(client: &C, nonce: &str) -> Result<Option<Challenge>> {
    let sql = format!("SELECT {COLUMNS} FROM challenge WHERE nonce = $1");
    first(client, &sql, &[&nonce]).await?.as_ref().map(challenge).transpose()
}

pub(crate) fn challenge(row: &Row) -> Result<Challenge> {
    Ok(Challenge {
        nonce: row.try_get(0)?,
        address: address(row, 1)?,
        account: parsed(row, 2)?,
        message: row.try_get(3)?,
        expires_at: timestamp(row, 4)?,
        failures: unsigned(row, 5)?,
    })
}

/// Counts a failed attempt. The last one allowed uses up the challenge.
pub(crate) async fn fail(write: &SerializedWrite<'_>, nonce: &str) -> Result<()> {
    let Some(challenge) = by_nonce(write.client(), nonce).await? else { return Ok(()) };
    let Some(failed) = decision::fail_challenge(challenge) else { return delete(write, nonce).await };
    let sql = "UPDATE challenge SET failures = $2 WHERE nonce = $1";
    execute(write.client(), sql, &[&nonce, &i64::from(failed.failures)]).await.map(drop)
}

async fn delete(write: &SerializedWrite<'_>, nonce: &str) -> Result<()> {
    execute(write.client(), "DELETE FROM challenge WHERE nonce = $1", &[&nonce]).await.map(drop)
}

/// Uses up a challenge and replaces the key of its account.
pub(crate) async fn rotate_key(
    write: &SerializedWrite<'_>,
    nonce: &str,
    key: KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let Some(challenge) = by_nonce(write.client(), nonce).await? else { return Ok(None) };
    let facts = accounts::key_facts(write.client(), &challenge.account, &key).await?;
    let Some(changes) = decision::rotate_key(&challenge, facts, key, now)? else { return Ok(None) };
    delete(write, nonce).await?;
    accounts::write_keys(write, changes).await.map(Some)
}
