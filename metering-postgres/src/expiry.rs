//! What is forgotten after a while: answers to requests, quotes, challenges, signup sessions, outcomes.

use metering_core::{Challenge, Quote, SignupSession, StoreError, Timestamp};

use crate::error::Result;
use crate::outcome;
use crate::rows::execute;
use crate::store::PostgresStore;
use crate::turn::Turn;
use crate::wait::REPORT_WAIT;

/// Rows of one table that are forgotten in one turn. All other facts wait meanwhile.
const PORTION: u64 = 5_000;

/// Tables, their keys, and which of their rows are old at a time. A quote whose account waits for somebody to come for
/// its key is kept however late it is.
const EXPIRED: [(&str, &str, &str); 6] = [
    ("request_id", "account, request_id", "expires_at <= $1 ORDER BY expires_at"),
    ("quote", "nonce", "honoured_until <= $1 AND state <> 'paid' ORDER BY honoured_until"),
    ("challenge", "nonce", "expires_at <= $1 ORDER BY expires_at"),
    ("signup", "token", "expires_at <= $1 ORDER BY expires_at"),
    ("used_solution", "solution", "expires_at <= $1 ORDER BY expires_at"),
    ("outcome", "id", "at <= $1 ORDER BY at"),
];

impl PostgresStore {
    /// Forgets what has expired, turn by turn, and returns how many of all together; outcomes are the backend's own,
    /// and do not count.
    pub(crate) async fn forget(&self, now: Timestamp) -> Result<u64, StoreError> {
        let mut forgotten: u64 = 0;
        loop {
            let portion = self.write_within(REPORT_WAIT, move |turn| Box::pin(forget_some(turn, now)));
            let (rows, is_all) = portion.await?;
            forgotten = forgotten.saturating_add(rows);
            if is_all {
                return Ok(forgotten);
            }
        }
    }
}

/// Forgets a portion of each kind, and says whether that was all.
async fn forget_some(turn: &Turn<'_>, now: Timestamp) -> Result<(u64, bool)> {
    // By the clock of whoever wrote them, and not by one that a caller hands in.
    let written = metering_core::Clock::now(&metering_core::SystemClock);
    let (mut forgotten, mut is_all) = (0, true);
    for (table, key, old) in EXPIRED {
        let until = match table {
            "quote" => now.saturating_sub(Quote::REMEMBERED),
            "challenge" => now.saturating_sub(Challenge::REMEMBERED),
            "signup" => now.saturating_sub(SignupSession::REMEMBERED),
            "outcome" => written.saturating_sub(outcome::KEPT),
            _ => now,
        };
        // The number in the text: of a limit that it does not know the database makes a plan for a large one.
        let sql =
            format!("DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {old} LIMIT {PORTION})");
        let rows = execute(turn.client(), &sql, &[&until.unix_millis()]).await?;
        is_all &= rows < PORTION;
        if table != "outcome" {
            forgotten += rows;
        }
    }
    Ok((forgotten, is_all))
}
