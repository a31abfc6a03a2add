//! What is forgotten after a while: answers to requests, quotes, challenges, signup sessions, outcomes.

use metering_core::{Challenge, Quote, SignupSession, StoreError, Timestamp};

use crate::check;
use crate::error::Result;
use crate::outcome;
use crate::rows::execute;
use crate::store::PostgresStore;
use crate::turn::Turn;
use crate::wait::REPORT_WAIT;

/// Rows of one table that are forgotten in one turn. All other facts wait meanwhile.
const PORTION: u64 = 5_000;

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
    // A quote whose account waits for somebody to come for its key is kept however late it is.
    let (unpaid, claimed) = ("state = 'open'", "state = 'claimed'");
    // table, its key, when a row expires, which rows alone may be forgotten, how long they are kept
    let expired = [
        ("request_id", "account, request_id", "expires_at", "TRUE", now),
        ("quote", "nonce", "honoured_until", unpaid, now.saturating_sub(Quote::UNPAID_REMEMBERED)),
        ("quote", "nonce", "honoured_until", claimed, now.saturating_sub(Quote::REMEMBERED)),
        ("challenge", "nonce", "expires_at", "TRUE", now.saturating_sub(Challenge::REMEMBERED)),
        ("signup", "token", "expires_at", "TRUE", now.saturating_sub(SignupSession::REMEMBERED)),
        ("used_solution", "solution", "expires_at", "TRUE", now),
    ];
    let (mut forgotten, mut is_all) = (0, true);
    for (table, key, expiry, which, until) in expired {
        let rows = forget_portion(turn, table, key, expiry, which, until).await?;
        is_all &= rows < PORTION;
        forgotten += rows;
    }
    // By the database's clock alone, which wrote their time too: a node whose clock is wrong must not take away what
    // another still asks for.
    let written = check::clock(turn.client()).await?.saturating_sub(outcome::KEPT);
    is_all &= forget_portion(turn, "outcome", "id", "written_at", "TRUE", written).await? < PORTION;
    Ok((forgotten, is_all))
}

/// Forgets the oldest rows of a table, and returns how many.
async fn forget_portion(
    turn: &Turn<'_>,
    table: &str,
    key: &str,
    expiry: &str,
    which: &str,
    until: Timestamp,
) -> Result<u64> {
    // The number in the text: of a limit that it does not know the database makes a plan for a large one.
    let old = format!("SELECT {key} FROM {table} WHERE {expiry} <= $1 AND {which} ORDER BY {expiry} LIMIT {PORTION}");
    let sql = format!("DELETE FROM {table} WHERE ({key}) IN ({old})");
    execute(turn.client(), &sql, &[&until.unix_millis()]).await
}
