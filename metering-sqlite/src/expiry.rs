//! What is forgotten after a while: answers to requests, quotes, challenges, signup sessions.

use metering_core::{Challenge, Quote, SignupSession, Timestamp};
use rusqlite::Connection;

use crate::error::{Result, store_error};

/// A quote whose account waits for somebody to come for its key is kept however late it is.
const QUOTES: &str = "DELETE FROM quote WHERE honoured_until <= ?1 AND state <> 'paid'";

/// Forgets what has expired, and returns how many of all together.
pub(crate) fn forget(connection: &Connection, now: Timestamp) -> Result<u64> {
    let expired = [
        ("DELETE FROM request_id WHERE expires_at <= ?1", now),
        (QUOTES, now.saturating_sub(Quote::REMEMBERED)),
        ("DELETE FROM challenge WHERE expires_at <= ?1", now.saturating_sub(Challenge::REMEMBERED)),
        ("DELETE FROM signup WHERE expires_at <= ?1", now.saturating_sub(SignupSession::REMEMBERED)),
        ("DELETE FROM used_solution WHERE expires_at <= ?1", now),
    ];
    let mut forgotten: u64 = 0;
    for (sql, until) in expired {
        let rows = connection.execute(sql, [until.unix_millis()]).map_err(store_error)?;
        forgotten = forgotten.saturating_add(u64::try_from(rows).unwrap_or(u64::MAX));
    }
    Ok(forgotten)
}
