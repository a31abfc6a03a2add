//! Deletes expired rows: remembered request ids, settled holds, quotes, challenges, signup sessions, used solutions, links
//! sent by email, events and their deliveries, ended keys beyond the newest of an account.

use metering_core::Timestamp;
use metering_core::charging::Hold;
use metering_core::events::Event;
use metering_core::payments::{Challenge, Quote};
use metering_core::signups::SignupSession;
use metering_sql::now as run;

use crate::access::ended_keys;
use crate::error::{Result, store_error};
use crate::events::excess;
use crate::journal::Snapshot;
use crate::script::Statements;
use crate::store::SqliteStore;

/// Rows per table that one transaction deletes. Charges wait for it; a slice takes a few milliseconds.
const SLICE: u64 = 500;

/// Keys of one account that one transaction deletes.
const DELETED: usize = 500;

const UNPAID_QUOTES: &str = "state = 'open' AND top_up IS NULL AND honoured_until <= ?1 ORDER BY honoured_until";
const UNPAID_TOP_UPS: &str = "state = 'open' AND top_up IS NOT NULL AND honoured_until <= ?1 ORDER BY honoured_until";

/// Tables, their keys, and the condition for rows that have expired. A `paid` quote, whose key has not been handed out
/// yet, is kept no matter how old it is.
const EXPIRED: [(&str, &str, &str); 9] = [
    ("request_id", "account, request_id", "expires_at <= ?1 ORDER BY expires_at"),
    ("hold", "id", "settled_at <= ?1 ORDER BY settled_at"),
    ("quote", "nonce", UNPAID_QUOTES),
    ("quote", "nonce", UNPAID_TOP_UPS),
    ("quote", "nonce", "state = 'claimed' AND honoured_until <= ?1 ORDER BY honoured_until"),
    ("challenge", "nonce", "expires_at <= ?1 ORDER BY expires_at"),
    ("signup", "token", "expires_at <= ?1 ORDER BY expires_at"),
    ("used_solution", "solution", "expires_at <= ?1 ORDER BY expires_at"),
    ("email_link", "token", "expires_at <= ?1 ORDER BY expires_at"),
];

/// Deletes a slice of each kind. Returns how many rows were deleted, and whether no expired rows are left.
pub(crate) fn forget_slice(connection: &Snapshot<'_>, now: Timestamp) -> Result<(u64, bool)> {
    let (mut forgotten, mut is_all) = (0_u64, true);
    for (table, key, old) in EXPIRED {
        let until = match table {
            "quote" if old == UNPAID_QUOTES => now.saturating_sub(Quote::UNPAID_RETENTION),
            "quote" if old == UNPAID_TOP_UPS => now.saturating_sub(Quote::UNPAID_TOP_UP_RETENTION),
            "quote" => now.saturating_sub(Quote::RETENTION),
            "hold" => now.saturating_sub(Hold::RETENTION),
            "challenge" => now.saturating_sub(Challenge::RETENTION),
            "signup" => now.saturating_sub(SignupSession::RETENTION),
            _ => now,
        };
        let sql = format!("DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {old} LIMIT {SLICE})");
        let mut delete = connection.prepare_cached(&sql).map_err(store_error)?;
        let rows = delete.execute([until.unix_millis()]).map_err(store_error)?;
        let rows = u64::try_from(rows).unwrap_or(u64::MAX);
        is_all &= rows < SLICE;
        forgotten = forgotten.saturating_add(rows);
    }
    let until = now.saturating_sub(Event::RETENTION);
    let events = run(metering_sql::events::forget(&mut Statements::new(connection), until, SLICE))?;
    let since = now.saturating_sub(Event::EXCESS_WINDOW);
    let excess = excess::forget(connection, since, Event::MAX_PER_ACCOUNT, SLICE)?;
    forgotten = forgotten.saturating_add(events + excess);
    Ok((forgotten, is_all && events < SLICE && excess < SLICE))
}

impl SqliteStore {
    /// Deletes ended keys beyond the newest of each account, and returns how many. Readers find them, so that charges wait
    /// only while keys are deleted.
    pub(super) async fn forget_ended_keys(&self, now: Timestamp) -> Result<u64> {
        let (mut forgotten, mut last) = (0_u64, 0);
        while let Some(account) = self.read(move |snapshot| ended_keys::next_account(snapshot, last)).await? {
            while self.read(move |snapshot| Ok(!ended_keys::to_delete(snapshot, account, now)?.is_empty())).await? {
                let some = self.writer.write(move |snapshot| ended_keys::delete_some(snapshot, account, now, DELETED));
                let deleted = some.await?;
                if deleted == 0 {
                    break;
                }
                forgotten = forgotten.saturating_add(u64::try_from(deleted).unwrap_or(u64::MAX));
            }
            last = account;
        }
        Ok(forgotten)
    }
}
