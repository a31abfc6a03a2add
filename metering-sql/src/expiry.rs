//! Deletes expired rows: remembered request ids, settled holds, quotes, challenges, signup sessions, used solutions, links
//! sent by email, sessions of browsers, invitations, begun sign-ins, clients and grants of OAuth, what sinks were sent of old
//! usage, events and their deliveries, ended keys beyond the newest of an account.

use metering_core::charging::Hold;
use metering_core::events::Event;
use metering_core::payments::{Challenge, Quote};
use metering_core::signups::SignupSession;
use metering_core::{StoreError, Timestamp};

use crate::backend::{Backend, delete};
use crate::executor::Executor;
use crate::fault::Result;
use crate::{ended_keys, events, values};

/// Rows of a table that are deleted some time after they have ended.
#[derive(Debug, Clone, Copy)]
pub struct Expiring {
    /// The table.
    pub table: &'static str,
    /// The columns that identify a row.
    pub key: &'static str,
    /// The column that says when a row has ended.
    pub ends_at: &'static str,
    /// Which rows.
    pub condition: &'static str,
}

impl Expiring {
    const fn all(table: &'static str, key: &'static str) -> Self {
        Self { table, key, ends_at: "expires_at", condition: "TRUE" }
    }

    const fn quotes(condition: &'static str) -> Self {
        Self { table: "quote", key: "nonce", ends_at: "honoured_until", condition }
    }

    /// Deletes the rows that ended first, of those that have ended by `?1`. The limit is a literal, not a parameter: with
    /// an unknown limit PostgreSQL would plan for a large one.
    #[must_use]
    pub fn deletion(&self, limit: u64) -> String {
        let Self { table, key, ends_at, condition } = self;
        format!(
            "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {condition} AND {ends_at} <= ?1 \
             ORDER BY {ends_at} LIMIT {limit})"
        )
    }

    /// Deletes at most `limit` of those that have ended by `until`, and returns how many.
    pub async fn delete(&self, db: &mut dyn Executor, until: Timestamp, limit: u64) -> Result<u64> {
        db.execute(&self.deletion(limit), &[values![until]]).await
    }
}

/// The expiring rows, and when each is deleted. A `paid` quote, whose key has not been handed out yet, is kept no
/// matter how old it is.
fn expired(now: Timestamp) -> [(Expiring, Timestamp); 15] {
    let holds = Expiring { table: "hold", key: "id", ends_at: "settled_at", condition: "settled_at IS NOT NULL" };
    let unpaid_quotes = Expiring::quotes("state = 'open' AND top_up IS NULL");
    let unpaid_top_ups = Expiring::quotes("state = 'open' AND top_up IS NOT NULL");
    [
        (Expiring::all("request_id", "account, request_id"), now),
        (holds, now.saturating_sub(Hold::RETENTION)),
        (unpaid_quotes, now.saturating_sub(Quote::UNPAID_RETENTION)),
        (unpaid_top_ups, now.saturating_sub(Quote::UNPAID_TOP_UP_RETENTION)),
        (Expiring::quotes("state = 'claimed'"), now.saturating_sub(Quote::RETENTION)),
        (Expiring::all("challenge", "nonce"), now.saturating_sub(Challenge::RETENTION)),
        (Expiring::all("signup", "token"), now.saturating_sub(SignupSession::RETENTION)),
        (Expiring::all("used_solution", "solution"), now),
        (Expiring::all("email_link", "token"), now),
        (Expiring::all("browser_session", "token"), now),
        (Expiring::all("invitation", "id"), now),
        (Expiring::all("sign_in_proof", "token"), now),
        (Expiring::all("oauth_client", "id"), now),
        (Expiring::all("oauth_grant", "id"), now),
        (Expiring::all("usage_sent", "sink, day, account, route_template, http_method, source, key"), now),
    ]
}

/// Deletes everything that has expired, in several transactions, and returns how many rows.
///
/// # Errors
/// Those of the database.
pub async fn forget(db: &dyn Backend, now: Timestamp) -> Result<u64, StoreError> {
    let (mut forgotten, limit) = (0_u64, db.deleted_at_once());
    loop {
        // One transaction per slice, so that others can write in between.
        let slice = delete(db, (now, limit), |db, (now, limit)| Box::pin(forget_some(db, *now, *limit)));
        let (rows, is_all) = slice.await?;
        forgotten = forgotten.saturating_add(rows);
        if is_all {
            break;
        }
    }
    Ok(forgotten.saturating_add(ended_keys::forget(db, now).await?))
}

/// Deletes a slice of each kind. Returns how many rows were deleted, and whether no expired rows are left.
async fn forget_some(db: &mut dyn Executor, now: Timestamp, limit: u64) -> Result<(u64, bool)> {
    // First, because it may wait for charges, and these may wait for what is deleted below.
    let until = now.saturating_sub(Event::RETENTION);
    let old_events = events::forget(db, until, limit).await?;
    let since = now.saturating_sub(Event::EXCESS_WINDOW);
    let excess = events::forget_excess(db, since, Event::MAX_PER_ACCOUNT, limit).await?;
    let (mut forgotten, mut is_all) = (old_events.saturating_add(excess), old_events < limit && excess < limit);
    for (expiring, until) in expired(now) {
        let rows = expiring.delete(db, until, limit).await?;
        is_all &= rows < limit;
        forgotten = forgotten.saturating_add(rows);
    }
    Ok((forgotten, is_all))
}
