//! What is forgotten after a while: answers to requests, quotes, challenges, signup sessions, outcomes.

use metering_core::{Challenge, Quote, SignupSession, Timestamp};

use crate::error::Result;
use crate::outcome;
use crate::rows::execute;
use crate::turn::Turn;

/// A quote whose account waits for somebody to come for its key is kept however late it is.
const QUOTES: &str = "DELETE FROM quote WHERE honoured_until <= $1 AND state <> 'paid'";

/// Forgets what has expired, and returns how many of all together; outcomes are the backend's own, and do not count.
pub(crate) async fn forget(turn: &Turn<'_>, now: Timestamp) -> Result<u64> {
    let client = turn.client();
    let expired = [
        ("DELETE FROM request_id WHERE expires_at <= $1", now),
        (QUOTES, now.saturating_sub(Quote::REMEMBERED)),
        ("DELETE FROM challenge WHERE expires_at <= $1", now.saturating_sub(Challenge::REMEMBERED)),
        ("DELETE FROM signup WHERE expires_at <= $1", now.saturating_sub(SignupSession::REMEMBERED)),
        ("DELETE FROM used_solution WHERE expires_at <= $1", now),
    ];
    let mut forgotten: u64 = 0;
    for (sql, until) in expired {
        let rows = execute(client, sql, &[&until.unix_millis()]).await?;
        forgotten = forgotten.saturating_add(rows);
    }
    // By the clock of whoever wrote them, and not by one that a caller hands in.
    let written = metering_core::Clock::now(&metering_core::SystemClock).saturating_sub(outcome::KEPT);
    execute(client, "DELETE FROM outcome WHERE at <= $1", &[&written.unix_millis()]).await?;
    Ok(forgotten)
}
