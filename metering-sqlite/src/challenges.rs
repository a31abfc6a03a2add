use metering_core::{Account, Challenge, KeyHash, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::accounts;
use crate::error::{Result, corrupt, store_error};
use crate::rows::{address, first, parse, timestamp};
use crate::writer::Stale;

/// The columns that [`challenge`] reads.
pub(crate) const COLUMNS: &str = "nonce, address, org_id, message, expires_at, failures";

/// Stores a challenge.
pub(crate) fn open(connection: &Connection, challenge: &Challenge) -> Result<()> {
    let Challenge { nonce, address, account, message, expires_at, failures } = challenge;
    if by_nonce(connection, nonce)?.is_some() {
        return Err(corrupt("the nonce of a new challenge is already in use"));
    }
    let sql = "INSERT INTO challenge (nonce, address, org_id, message, expires_at, failures) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let values = params![nonce, address.as_bytes(), account.as_str(), message, expires_at.unix_millis(), failures];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

/// The challenge with this nonce, unless it is used up.
pub(crate) fn by_nonce(connection: &Connection, nonce: &str) -> Result<Option<Challenge>> {
    let sql = format!("SELECT {COLUMNS} FROM challenge WHERE nonce = ?1");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    first(&mut statement, [nonce], challenge)
}

pub(crate) fn challenge(row: &Row<'_>) -> rusqlite::Result<Result<Challenge>> {
    let (nonce, address, account): (_, _, String) = (row.get(0)?, address(row, 1)?, row.get(2)?);
    let (message, expires_at, failures) = (row.get(3)?, timestamp(row, 4)?, row.get(5)?);
    let account = parse(&account);
    Ok(account.map(|account| Challenge { nonce, address, account, message, expires_at, failures }))
}

/// Counts a failed attempt. The last one allowed uses up the challenge.
pub(crate) fn fail(connection: &Connection, nonce: &str) -> Result<()> {
    let sql = "UPDATE challenge SET failures = failures + 1 WHERE nonce = ?1";
    connection.execute(sql, [nonce]).map_err(store_error)?;
    let sql = "DELETE FROM challenge WHERE nonce = ?1 AND failures >= ?2";
    connection.execute(sql, params![nonce, Challenge::MAX_FAILURES]).map(drop).map_err(store_error)
}

/// Uses up a challenge and replaces the key of its account. Also returns which account that is: only the challenge
/// names it.
pub(crate) fn rotate_key(
    connection: &Connection,
    nonce: &str,
    key: &KeyHash,
    now: Timestamp,
) -> Result<(Stale, Option<Account>)> {
    let Some(challenge) = by_nonce(connection, nonce)?.filter(|challenge| now <= challenge.expires_at) else {
        return Ok((Stale::Nothing, None));
    };
    let is_payer = |account: Account| account.payer.is_some_and(|payer| payer.address == challenge.address);
    if !accounts::by_id(connection, &challenge.account)?.is_some_and(|(_, account)| is_payer(account)) {
        return Ok((Stale::Nothing, None));
    }
    let rotated = accounts::replace_key(connection, &challenge.account, key, now)?;
    if rotated.is_some() {
        connection.execute("DELETE FROM challenge WHERE nonce = ?1", [nonce]).map_err(store_error)?;
    }
    Ok((Stale::Account(challenge.account), rotated))
}
