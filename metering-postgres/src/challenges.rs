use metering_core::{Account, Challenge, KeyHash, Timestamp};

use tokio_postgres::Row;

use crate::accounts;
use crate::error::{Result, corrupt};
use crate::rows::{Values, address, execute, first, parsed, timestamp, unsigned};
use crate::serialized::SerializedWrite;
use crate::session::GenericClient;

/// The columns that [`challenge`] reads.
pub(crate) const COLUMNS: &str = "nonce, address, org_id, message, expires_at, failures";

/// Stores a challenge.
pub(crate) async fn open(write: &SerializedWrite<'_>, challenge: &Challenge) -> Result<()> {
    let Challenge { nonce, address, account, message, expires_at, failures } = challenge;
    if by_nonce(write.client(), nonce).await?.is_some() {
        return Err(corrupt("the nonce of a new challenge is already in use"));
    }
    let sql = "INSERT INTO challenge (nonce, address, org_id, message, expires_at, failures) \
               VALUES ($1, $2, $3, $4, $5, $6)";
    let (address, account) = (address.as_bytes().as_slice(), account.as_str());
    let values: Values<'_> = &[nonce, &address, &account, message, &expires_at.unix_millis(), &i64::from(*failures)];
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
    let client = write.client();
    execute(client, "UPDATE challenge SET failures = failures + 1 WHERE nonce = $1", &[&nonce]).await?;
    let sql = "DELETE FROM challenge WHERE nonce = $1 AND failures >= $2";
    execute(client, sql, &[&nonce, &i64::from(Challenge::MAX_FAILURES)]).await.map(drop)
}

/// Uses up a challenge and replaces the key of its account.
pub(crate) async fn rotate_key(
    write: &SerializedWrite<'_>,
    nonce: &str,
    key: &KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let client = write.client();
    let Some(challenge) = by_nonce(client, nonce).await?.filter(|challenge| now <= challenge.expires_at) else {
        return Ok(None);
    };
    let is_payer = |account: Account| account.payer.is_some_and(|payer| payer.address == challenge.address);
    if !accounts::by_id(client, &challenge.account).await?.is_some_and(|(_, account)| is_payer(account)) {
        return Ok(None);
    }
    let rotated = accounts::replace_key(write, &challenge.account, key, now).await?;
    if rotated.is_some() {
        execute(client, "DELETE FROM challenge WHERE nonce = $1", &[&nonce]).await?;
    }
    Ok(rotated)
}
