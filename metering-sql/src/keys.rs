//! Keys and their secrets.

use metering_core::access::{Budget, Key, KeyHash, KeyId, KeyNumber, KeyTerms, Spent};
use metering_core::backend::decision::{KeyWrite, MeterWrite, OldSecrets};
use metering_core::charging::{KeyMeter, Window};
use metering_core::{AccountId, RateLimits, Timestamp};

use crate::alert::alert_level;
use crate::executor::Executor;
use crate::fault::{Fault, Result, corrupt};
use crate::row::Row;
use crate::value::Value;
use crate::values;

pub(crate) const COLUMNS: &str = "k.number, k.{key_id}, k.parent, k.name, k.scopes, k.routes, k.networks, k.expires_at, \
     k.disabled, k.requests_per_minute, k.requests_per_day, k.max_in_flight, k.{budget}, k.budget_reset, k.created_at, \
     k.leaked_at, k.revoked_at, k.alert_below, c.spent_since, c.spent, c.minute, c.minute_count, c.day, c.day_count, \
     c.raised";
/// How many there are.
pub(crate) const COLUMN_COUNT: usize = 25;
const TABLES: &str = "api_key k LEFT JOIN key_meter c ON c.account = k.account AND c.key = k.number";

/// A key, and what counts against its terms.
pub type Metered = (Key, Option<KeyMeter>);

/// The keys of the account with this row number and id that match. In `rest` the number is `?1`.
async fn select(db: &mut dyn Executor, rest: &str, values: &[Value], account: &AccountId) -> Result<Vec<Metered>> {
    let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE k.account = ?1 AND {rest}");
    db.query(&sql, values).await?.iter().map(|row| metered(row, account)).collect()
}

/// Whether any key has, or ever had, this secret.
pub async fn is_secret_in_use(db: &mut dyn Executor, secret: &KeyHash) -> Result<bool> {
    Ok(!db.query("SELECT 1 FROM key_secret WHERE hash = ?1", &values![secret]).await?.is_empty())
}

/// The key that has, or had, a secret.
pub async fn of_secret(db: &mut dyn Executor, secret: &KeyHash) -> Result<Option<Key>> {
    let sql =
        "SELECT s.account, s.key, a.org_id FROM key_secret s JOIN account a ON a.id = s.account WHERE s.hash = ?1";
    let rows = db.query(sql, &values![secret]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (account, number): (i64, KeyNumber) = (row.get(0)?, row.get(1)?);
    by_number(db, account, &row.get(2)?, number).await.map(Some)
}

/// The row number of the account of a secret that is neither revoked nor expired, and the number of its key, with the
/// end of the secret's grace period. The account may be revoked.
pub async fn working_secret(
    db: &mut dyn Executor,
    secret: &KeyHash,
    now: Timestamp,
) -> Result<Option<(i64, KeyNumber, Option<Timestamp>)>> {
    let sql = "SELECT account, key, expires_at FROM key_secret \
               WHERE hash = ?1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)";
    let rows = db.query(sql, &values![secret, now]).await?;
    rows.first().map(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).transpose()
}

/// The key with this number, which another row names.
pub async fn by_number(db: &mut dyn Executor, row: i64, account: &AccountId, number: KeyNumber) -> Result<Key> {
    let found = select(db, "k.number = ?2", &values![row, number], account).await?.pop();
    let missing = || corrupt(format_args!("key {} of account {account} is missing", number.get()));
    found.map(|(key, _)| key).ok_or_else(missing)
}

/// The query for the secrets of an account's first key. A secret that was replaced with a grace period has an end. The
/// secrets of a key that leaked are revoked.
pub const FIRST_SECRET: &str = "SELECT s.hash, s.created_at FROM account a {join} key_secret s ON s.account = a.id \
     WHERE a.org_id = ?1 AND a.revoked_at IS NULL AND s.key = ?2 AND s.revoked_at IS NULL AND s.expires_at IS NULL";

/// The newest secret of an account's first key, unless it is revoked.
pub async fn first_secret(db: &mut dyn Executor, account: &AccountId) -> Result<Option<KeyHash>> {
    let rows = db.query(FIRST_SECRET, &values![account, KeyNumber::FIRST]).await?;
    let secret = |row: &Row| Ok((row.get::<Timestamp>(1)?, row.get(0)?));
    let secrets = rows.iter().map(secret).collect::<Result<Vec<(_, KeyHash)>>>()?;
    Ok(secrets.into_iter().max_by_key(|(created_at, _)| *created_at).map(|(_, hash)| hash))
}

/// The key with this id, revoked or not.
pub async fn by_id(db: &mut dyn Executor, row: i64, account: &AccountId, id: &KeyId) -> Result<Option<Metered>> {
    Ok(select(db, "k.{key_id} = ?2", &values![row, id], account).await?.pop())
}

/// A key and its parents, up to the account's first key. Empty if there is no such key.
pub async fn chain(db: &mut dyn Executor, row: i64, account: &AccountId, number: KeyNumber) -> Result<Vec<Key>> {
    let sql = format!(
        "WITH RECURSIVE above (number, parent, place) AS ( \
           SELECT number, parent, 0 FROM api_key WHERE account = ?1 AND number = ?2 \
           UNION ALL SELECT p.number, p.parent, b.place + 1 FROM above b \
             JOIN api_key p ON p.account = ?1 AND p.number = b.parent AND p.number < b.number) \
         SELECT {COLUMNS} FROM above b JOIN api_key k ON k.account = ?1 AND k.number = b.number \
         LEFT JOIN key_meter c ON c.account = k.account AND c.key = k.number ORDER BY b.place"
    );
    let rows = db.query(&sql, &values![row, number]).await?;
    rows.iter().map(|row| metered(row, account).map(|(key, _)| key)).collect()
}

/// The keys of an account that are not revoked, by number, from a number on, at most `most`.
pub async fn unrevoked(
    db: &mut dyn Executor,
    row: i64,
    account: &AccountId,
    from: i64,
    most: i64,
) -> Result<Vec<Metered>> {
    let rest = "k.number >= ?2 AND k.revoked_at IS NULL ORDER BY k.number LIMIT ?3";
    select(db, rest, &values![row, from, most], account).await
}

/// All keys of an account that are not revoked, by number.
pub async fn all_unrevoked(db: &mut dyn Executor, row: i64, account: &AccountId) -> Result<Vec<Key>> {
    let found = unrevoked(db, row, account, 0, i64::MAX).await?;
    Ok(found.into_iter().map(|(key, _)| key).collect())
}

/// How many keys of an account are neither revoked nor expired at `now`, and the number of the next key.
pub async fn count_and_next(db: &mut dyn Executor, row: i64, now: Timestamp) -> Result<(u32, KeyNumber)> {
    let sql = "SELECT count(*) FILTER (WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)), \
               coalesce(max(number) + 1, 0) FROM api_key WHERE account = ?1";
    let rows = db.query(sql, &values![row, now]).await?;
    let found = rows.first().ok_or_else(|| corrupt("a query that always has a row has none"))?;
    Ok((found.get(0)?, found.get(1)?))
}

/// Writes a key, what becomes of its secrets, its meter and its event. Unless the account was just inserted, the caller
/// must then call [`Executor::settings_changed`].
pub async fn write(db: &mut dyn Executor, change: &KeyWrite<i64>) -> Result<()> {
    let KeyWrite { row, key, old_secrets, secret, meter, written_at, event } = change;
    let old = match old_secrets {
        OldSecrets::Keep => None,
        OldSecrets::Revoke => Some(("revoked_at = ?3", written_at)),
        OldSecrets::EndGrace => {
            Some(("revoked_at = CASE WHEN expires_at IS NULL THEN revoked_at ELSE ?3 END", written_at))
        }
        OldSecrets::ExpireAt(at) => Some(("expires_at = CASE WHEN expires_at < ?3 THEN expires_at ELSE ?3 END", at)),
    };
    if let Some((set, at)) = old {
        let sql = format!("UPDATE key_secret SET {set} WHERE account = ?1 AND key = ?2 AND revoked_at IS NULL");
        db.execute(&sql, &[values![row, key.number, at]]).await?;
    }
    upsert(db, *row, key).await?;
    if let Some(secret) = secret {
        let sql = "INSERT INTO key_secret (hash, account, key, created_at) VALUES (?1, ?2, ?3, ?4)";
        db.execute(sql, &[values![secret, row, key.number, written_at]]).await?;
        delete_old_secrets(db, *row, key.number, *written_at).await?;
    }
    match meter {
        MeterWrite::Keep => {}
        MeterWrite::Set(meter) => set_meter(db, *row, key.number, meter).await?,
        MeterWrite::Remove => {
            let sql = "DELETE FROM key_meter WHERE account = ?1 AND key = ?2";
            db.execute(sql, &[values![row, key.number]]).await?;
        }
    }
    db.write_events(Some(*row), event.as_slice()).await
}

/// Deletes the secrets of a key that ended some time ago, except the newest [`Key::MAX_ENDED_SECRETS`].
async fn delete_old_secrets(db: &mut dyn Executor, row: i64, key: KeyNumber, now: Timestamp) -> Result<()> {
    let until = now.saturating_sub(Key::ENDED_RETENTION);
    db.execute(&old_secrets(), &[values![row, key, until]]).await.map(drop)
}

/// Deletes the oldest secrets of a key that ended by `?3`. Two parts, each with an index of its own.
#[must_use]
pub fn old_secrets() -> String {
    format!(
        "DELETE FROM key_secret WHERE hash IN (SELECT hash FROM ( \
           SELECT hash, revoked_at AS ended_at FROM key_secret \
             WHERE account = ?1 AND key = ?2 AND revoked_at IS NOT NULL AND revoked_at <= ?3 \
           UNION ALL SELECT hash, expires_at FROM key_secret \
             WHERE account = ?1 AND key = ?2 AND revoked_at IS NULL AND expires_at <= ?3) ended \
           ORDER BY ended_at DESC LIMIT 1000 OFFSET {})",
        Key::MAX_ENDED_SECRETS
    )
}

async fn upsert(db: &mut dyn Executor, row: i64, key: &Key) -> Result<()> {
    let sql = "INSERT INTO api_key (account, number, {key_id}, parent, name, scopes, routes, networks, expires_at, \
               disabled, requests_per_minute, requests_per_day, max_in_flight, {budget}, budget_reset, created_at, \
               leaked_at, revoked_at, alert_below) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19) \
               ON CONFLICT (account, number) DO UPDATE SET name = excluded.name, scopes = excluded.scopes, \
               routes = excluded.routes, networks = excluded.networks, expires_at = excluded.expires_at, \
               disabled = excluded.disabled, requests_per_minute = excluded.requests_per_minute, \
               requests_per_day = excluded.requests_per_day, max_in_flight = excluded.max_in_flight, \
               {budget} = excluded.{budget}, budget_reset = excluded.budget_reset, leaked_at = excluded.leaked_at, \
               revoked_at = excluded.revoked_at, alert_below = excluded.alert_below";
    let KeyTerms { name, scopes, routes, networks, expires_at, disabled, limits, max_in_flight, budget, alert_below } =
        &key.terms;
    let (limit, reset) = (budget.map(|budget| budget.limit), budget.and_then(|budget| budget.reset));
    let mut values = values![row, key.number, key.id, key.parent, name, scopes, routes, networks, expires_at, disabled];
    values.extend(values![limits.requests_per_minute, limits.requests_per_day, max_in_flight, limit, reset]);
    values.extend(values![key.created_at, key.leaked_at, key.revoked_at, alert_below]);
    db.execute(sql, &[values]).await.map(drop)
}

/// Writes the meter of a key.
pub async fn set_meter(db: &mut dyn Executor, account: i64, key: KeyNumber, meter: &KeyMeter) -> Result<()> {
    let sql = "INSERT INTO key_meter (account, key, spent_since, spent, minute, minute_count, day, day_count, raised) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (account, key) DO UPDATE \
               SET spent_since = excluded.spent_since, spent = excluded.spent, minute = excluded.minute, \
               minute_count = excluded.minute_count, day = excluded.day, day_count = excluded.day_count, \
               raised = excluded.raised";
    let KeyMeter { spent: Spent { since, amount }, raised, minute, day } = meter;
    let mut values: Vec<Value> = values![account, key, since, amount, minute.index, minute.count];
    values.extend(values![day.index, day.count, raised.number()]);
    db.execute(sql, &[values]).await.map(drop)
}

/// Reads [`COLUMNS`].
pub(crate) fn metered(row: &Row, account: &AccountId) -> Result<Metered> {
    Ok((key(row, account)?, meter(row, 18)?))
}

/// Reads a meter, whose columns are all NULL if the key has none.
fn meter(row: &Row, first: usize) -> Result<Option<KeyMeter>> {
    let Some(since) = row.get(first)? else { return Ok(None) };
    let window = |first| Ok::<_, Fault>(Window { index: row.get(first)?, count: row.get(first + 1)? });
    let (minute, day) = (window(first + 2)?, window(first + 4)?);
    let raised = alert_level(row, first + 6, "key_meter.raised")?;
    Ok(Some(KeyMeter { spent: Spent { since, amount: row.get(first + 1)? }, raised, minute, day }))
}

/// Reads a key from [`COLUMNS`].
fn key(row: &Row, account: &AccountId) -> Result<Key> {
    let reset = row.get(13)?;
    let terms = KeyTerms {
        name: row.get(3)?,
        scopes: row.get(4)?,
        routes: row.get(5)?,
        networks: row.get(6)?,
        expires_at: row.get(7)?,
        disabled: row.get(8)?,
        limits: RateLimits { requests_per_minute: row.get(9)?, requests_per_day: row.get(10)? },
        max_in_flight: row.get(11)?,
        budget: row.get::<Option<_>>(12)?.map(|limit| Budget { limit, reset }),
        alert_below: row.get(17)?,
    };
    Ok(Key {
        id: row.get(1)?,
        number: row.get(0)?,
        account: account.clone(),
        parent: row.get(2)?,
        terms,
        created_at: row.get(14)?,
        leaked_at: row.get(15)?,
        revoked_at: row.get(16)?,
    })
}
