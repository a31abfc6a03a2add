//! Deletes expired rows: remembered request ids, settled holds, quotes, challenges, signup sessions, used solutions,
//! links sent by email, events with their deliveries, outcomes, ended keys beyond the newest of an account.

use metering_core::charging::Hold;
use metering_core::events::Event;
use metering_core::payments::{Challenge, Quote};
use metering_core::signups::SignupSession;
use metering_core::{StoreError, Timestamp};

use crate::access::ended_keys;
use crate::connection::wait::REPORT_TIMEOUT;
use crate::error::Result;
use crate::rows::{all, execute};
use crate::script::Statements;
use crate::store::{PostgresStore, check};
use crate::transactions::outcome;
use crate::transactions::serialized::SerializedWrite;

/// Rows per table that one transaction deletes. All other serialized writes wait for it.
const BATCH_ROWS: u64 = 5_000;

impl PostgresStore {
    /// Deletes expired rows in several transactions and returns how many. Outcomes are internal to this backend and do
    /// not count.
    pub(crate) async fn forget(&self, now: Timestamp) -> Result<u64, StoreError> {
        let mut forgotten: u64 = 0;
        loop {
            let portion = self.write_within(REPORT_TIMEOUT, move |write| Box::pin(forget_some(write, now)));
            let (rows, is_all) = portion.await?;
            forgotten = forgotten.saturating_add(rows);
            if is_all {
                break;
            }
        }
        Ok(forgotten.saturating_add(self.forget_ended_keys(now).await?))
    }

    /// Deletes ended keys beyond the newest of each account, and returns how many. Which there are is read without the
    /// lock of serialized writes.
    async fn forget_ended_keys(&self, now: Timestamp) -> Result<u64, StoreError> {
        let (mut forgotten, mut last) = (0_u64, 0_i64);
        while let Some(account) = self.read(move |client| Box::pin(ended_keys::next_account(client, last))).await? {
            let find =
                async || self.read_at_once(move |client| Box::pin(ended_keys::to_delete(client, account, now))).await;
            while !find().await?.is_empty() {
                let some = self
                    .write_within(REPORT_TIMEOUT, move |write| Box::pin(ended_keys::delete_some(write, account, now)));
                let deleted = some.await?;
                if deleted == 0 {
                    break;
                }
                forgotten = forgotten.saturating_add(deleted);
            }
            last = account;
        }
        Ok(forgotten)
    }
}

/// Deletes a portion of each kind. Returns how many rows were deleted, and whether no expired rows are left.
async fn forget_some(write: &SerializedWrite<'_>, now: Timestamp) -> Result<(u64, bool)> {
    // A `paid` quote, whose key has not been handed out yet, is kept no matter how old it is.
    let (unpaid, claimed) = ("state = 'open' AND top_up IS NULL", "state = 'claimed'");
    let unpaid_top_ups = "state = 'open' AND top_up IS NOT NULL";
    // table, its key, the column of the expiry time, which rows may be deleted at all, up to which expiry time
    let expired = [
        ("request_id", "account, request_id", "expires_at", "TRUE", now),
        ("hold", "id", "settled_at", "settled_at IS NOT NULL", now.saturating_sub(Hold::RETENTION)),
        ("quote", "nonce", "honoured_until", unpaid, now.saturating_sub(Quote::UNPAID_RETENTION)),
        ("quote", "nonce", "honoured_until", unpaid_top_ups, now.saturating_sub(Quote::UNPAID_TOP_UP_RETENTION)),
        ("quote", "nonce", "honoured_until", claimed, now.saturating_sub(Quote::RETENTION)),
        ("challenge", "nonce", "expires_at", "TRUE", now.saturating_sub(Challenge::RETENTION)),
        ("signup", "token", "expires_at", "TRUE", now.saturating_sub(SignupSession::RETENTION)),
        ("used_solution", "solution", "expires_at", "TRUE", now),
        ("email_link", "token", "expires_at", "TRUE", now),
    ];
    // First, because it may wait for charges, and these may wait for what is deleted below.
    let expired_events = forget_events(write, now.saturating_sub(Event::RETENTION)).await?;
    let excess = forget_excess(write, now.saturating_sub(Event::EXCESS_WINDOW)).await?;
    let mut forgotten = expired_events + excess;
    let mut is_all = expired_events < BATCH_ROWS && excess < BATCH_ROWS;
    for (table, key, expiry, which, until) in expired {
        let rows = forget_batch(write, table, key, expiry, which, until).await?;
        is_all &= rows < BATCH_ROWS;
        forgotten += rows;
    }
    // Compare with the database's clock, which also set `written_at`: a node with a wrong clock must not delete what
    // another node still needs.
    let written = check::clock(write.client()).await?.saturating_sub(outcome::KEPT);
    is_all &= forget_batch(write, "outcome", "id", "written_at", "TRUE", written).await? < BATCH_ROWS;
    Ok((forgotten, is_all))
}

/// Deletes the oldest expired events, at most [`BATCH_ROWS`], and returns how many.
async fn forget_events(write: &SerializedWrite<'_>, until: Timestamp) -> Result<u64> {
    Ok(metering_sql::events::forget(&mut Statements(write.client()), until, BATCH_ROWS).await?)
}

/// Deletes events beyond the newest [`Event::MAX_PER_ACCOUNT`] of an account, of accounts that had one after `since`, at
/// most [`BATCH_ROWS`], and returns how many.
async fn forget_excess(write: &SerializedWrite<'_>, since: Timestamp) -> Result<u64> {
    let keep = Event::MAX_PER_ACCOUNT;
    let excess = format!(
        "SELECT old.number FROM (SELECT DISTINCT account FROM event WHERE created_at > $1 AND account <> 0) recent \
         CROSS JOIN LATERAL (SELECT number FROM event WHERE account = recent.account \
           ORDER BY number DESC OFFSET {keep} LIMIT {BATCH_ROWS}) old LIMIT {BATCH_ROWS}"
    );
    let excess = all(write.client(), &excess, &[&since.unix_millis()]).await?;
    let excess: Vec<i64> = excess.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    Ok(metering_sql::events::delete(&mut Statements(write.client()), &excess).await?)
}

/// Deletes the oldest expired rows of a table, at most [`BATCH_ROWS`], and returns how many.
async fn forget_batch(
    write: &SerializedWrite<'_>,
    table: &str,
    key: &str,
    expiry: &str,
    which: &str,
    until: Timestamp,
) -> Result<u64> {
    // The limit is a literal, not a parameter: with an unknown limit the database would plan for a large one.
    let old =
        format!("SELECT {key} FROM {table} WHERE {expiry} <= $1 AND {which} ORDER BY {expiry} LIMIT {BATCH_ROWS}");
    let sql = format!("DELETE FROM {table} WHERE ({key}) IN ({old})");
    execute(write.client(), &sql, &[&until.unix_millis()]).await
}
