//! Reads keys and their secrets.

use metering_core::access::{Budget, Key, KeyHash, KeyHolder, KeyNumber, KeyTerms};
use metering_core::charging::{KeyMeter, RateWindows};
use metering_core::{AccountId, Credits, RateLimits, Timestamp};
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::error::{Failure, Result};
use crate::rows::{
    ACCOUNT_COLUMN_COUNT, ACCOUNT_COLUMNS, KEY_METER_COLUMN_COUNT, KEY_METER_COLUMNS, WINDOW_COLUMN_COUNT,
    WINDOW_COLUMNS, account, all, amount, bytes, execute, key_number, optional_key_meter, optional_timestamp, parsed,
    timestamp, unsigned, windows,
};

/// The columns that [`key`] reads from `api_key k`.
pub(crate) const KEY_COLUMNS: &str = "k.account, k.number, k.id, k.parent, k.name, k.scopes, k.routes, k.networks, \
     k.expires_at, k.disabled, k.requests_per_minute, k.requests_per_day, k.max_in_flight, k.budget, k.budget_reset, \
     k.created_at, k.leaked_at, k.revoked_at, k.alert_below";

/// Draws the account's `meter.access` anew: what nodes know of its keys and secrets has changed.
pub(crate) async fn draw_access<C: GenericClient>(client: &C, account: i64) -> Result<()> {
    execute(client, "UPDATE meter SET access = DEFAULT WHERE account = $1", &[&account]).await.map(drop)
}

/// Reads a key of this account from [`KEY_COLUMNS`], which start at `first`.
pub(crate) fn key(row: &Row, first: usize, account: &AccountId) -> Result<Key> {
    Ok(Key {
        id: parsed(row, first + 2)?,
        number: key_number(row, first + 1)?,
        account: account.clone(),
        parent: parent(row, first)?,
        terms: terms(row, first)?,
        created_at: timestamp(row, first + 15)?,
        leaked_at: optional_timestamp(row, first + 16)?,
        revoked_at: optional_timestamp(row, first + 17)?,
    })
}

/// Reads only the parent, from the columns of [`key`].
pub(crate) fn parent(row: &Row, first: usize) -> Result<Option<KeyNumber>> {
    match row.try_get::<_, Option<i64>>(first + 3)? {
        Some(_) => key_number(row, first + 3).map(Some),
        None => Ok(None),
    }
}

/// Reads only the terms, from the columns of [`key`].
pub(crate) fn terms(row: &Row, first: usize) -> Result<KeyTerms> {
    let reset = row.try_get::<_, Option<&str>>(first + 14)?.map(crate::rows::parse).transpose()?;
    let budget = match row.try_get::<_, Option<i64>>(first + 13)? {
        Some(_) => Some(Budget { limit: amount(row, first + 13)?, reset }),
        None => None,
    };
    Ok(KeyTerms {
        name: parsed(row, first + 4)?,
        scopes: parsed(row, first + 5)?,
        routes: parsed(row, first + 6)?,
        networks: parsed(row, first + 7)?,
        expires_at: optional_timestamp(row, first + 8)?,
        disabled: row.try_get(first + 9)?,
        limits: RateLimits {
            requests_per_minute: unsigned(row, first + 10)?,
            requests_per_day: unsigned(row, first + 11)?,
        },
        max_in_flight: unsigned(row, first + 12)?,
        budget,
        alert_below: row.try_get::<_, Option<i64>>(first + 18)?.map(Credits::from_atoms),
    })
}

/// Who a secret belongs to; `None` if it is unknown or revoked, or its account is revoked.
pub(crate) async fn holder<C: GenericClient>(client: &C, secret: &KeyHash) -> Result<Option<KeyHolder>> {
    let sql = format!(
        "WITH RECURSIVE chain (account, number, expires_at, place) AS ( \
           SELECT s.account, s.key, s.expires_at, 0 FROM key_secret s WHERE s.hash = $1 AND s.revoked_at IS NULL \
           UNION ALL SELECT h.account, k.parent, h.expires_at, h.place + 1 FROM chain h \
             JOIN api_key k ON k.account = h.account AND k.number = h.number WHERE k.parent IS NOT NULL) \
         SELECT {ACCOUNT_COLUMNS}, h.expires_at, {WINDOW_COLUMNS}, {KEY_METER_COLUMNS}, {KEY_COLUMNS} \
         FROM chain h JOIN api_key k ON k.account = h.account AND k.number = h.number \
         JOIN account a ON a.id = h.account JOIN meter m ON m.account = h.account \
         LEFT JOIN key_meter c ON c.account = k.account AND c.key = k.number \
         WHERE a.revoked_at IS NULL ORDER BY h.place"
    );
    let rows = all(client, &sql, &[&secret.as_bytes().as_slice()]).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let (_, account) = account(first)?;
    let (expiry, meter) = (ACCOUNT_COLUMN_COUNT, ACCOUNT_COLUMN_COUNT + 1 + WINDOW_COLUMN_COUNT);
    let of_key = |row: &Row| {
        let KeyMeter { minute, day, .. } = optional_key_meter(row, meter)?.unwrap_or_default();
        Ok::<_, Failure>((key(row, meter + KEY_METER_COLUMN_COUNT, &account.id)?, RateWindows { minute, day }))
    };
    let keys = rows.iter().map(of_key).collect::<Result<Vec<_>>>()?;
    let (chain, key_windows) = keys.into_iter().unzip();
    let (secret_expires_at, windows) = (optional_timestamp(first, expiry)?, windows(first, expiry + 1)?);
    Ok(Some(KeyHolder { account, chain, secret_expires_at, windows, key_windows }))
}

/// Which secrets work at `now`, in their order.
pub(crate) async fn live<C: GenericClient>(client: &C, secrets: &[KeyHash], now: Timestamp) -> Result<Vec<bool>> {
    let sql = "WITH RECURSIVE chain (hash, account, number) AS ( \
           SELECT s.hash, s.account, s.key FROM key_secret s JOIN account a ON a.id = s.account \
           WHERE s.hash = ANY($1) AND s.revoked_at IS NULL AND a.revoked_at IS NULL \
           AND (s.expires_at IS NULL OR s.expires_at > $2) \
           UNION ALL SELECT c.hash, c.account, k.parent FROM chain c \
             JOIN api_key k ON k.account = c.account AND k.number = c.number WHERE k.parent IS NOT NULL) \
         SELECT c.hash FROM chain c JOIN api_key k ON k.account = c.account AND k.number = c.number GROUP BY c.hash \
         HAVING bool_and(NOT k.disabled AND k.leaked_at IS NULL AND k.revoked_at IS NULL \
           AND (k.expires_at IS NULL OR k.expires_at > $2))";
    let mut unique: Vec<&[u8]> = secrets.iter().map(|secret| secret.as_bytes().as_slice()).collect();
    unique.sort_unstable();
    unique.dedup();
    let rows = all(client, sql, &[&unique, &now.unix_millis()]).await?;
    let live: Vec<[u8; 32]> = rows.iter().map(|row| bytes(row, 0)).collect::<Result<_>>()?;
    let live: std::collections::HashSet<[u8; 32]> = live.into_iter().collect();
    Ok(secrets.iter().map(|secret| live.contains(secret.as_bytes())).collect())
}
