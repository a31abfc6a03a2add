use metering_core::access::KeyHash;
use metering_core::backend::decision;
use metering_core::payments::Challenge;
use metering_core::{Account, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::access::key_changes;
use crate::error::{Result, store_error};
use crate::journal::Snapshot;
use crate::rows::{address, first, parse, timestamp};

/// The columns that [`challenge`] reads.
pub(crate) const COLUMNS: &str = "nonce, address, org_id, message, expires_at, failures";

/// Stores a challenge.
pub(crate) fn open(connection: &Connection, new: Challenge) -> Result<()> {
    let nonce_in_use = by_nonce(connection, &new.nonce)?.is_some();
    let Challenge { nonce, address, account, message, expires_at, failures } =
        decision::open_challenge(new, nonce_in_use)?;
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
    let Some(challenge) = by_nonce(connection, nonce)? else { return Ok(()) };
    let Some(failed) = decision::fail_challenge(challenge) else { return delete(connection, nonce) };
    let sql = "UPDATE challenge SET failures = ?2 WHERE nonce = ?1";
    connection.execute(sql, params![nonce, failed.failures]).map(drop).map_err(store_error)
}

fn delete(connection: &Connection, nonce: &str) -> Result<()> {
    connection.execute("DELETE FROM challenge WHERE nonce = ?1", [nonce]).map(drop).map_err(store_error)
}

/// Uses up a challenge and replaces the key of its account.
pub(crate) fn rotate_key(
    connection: &Snapshot<'_>,
    nonce: &str,
    key: KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let Some(challenge) = by_nonce(connection, nonce)? else { return Ok(None) };
    let facts = key_changes::replace_facts(connection, &challenge.account, &key)?;
    match decision::rotate_key(&challenge, facts, key, now)? {
        Some(changes) => {
            delete(connection, nonce)?;
            key_changes::write_all(connection, changes).map(Some)
        }
        None => Ok(None),
    }
}
