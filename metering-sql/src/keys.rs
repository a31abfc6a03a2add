//! Keys and their secrets.

use metering_core::access::{Budget, Key, KeyHash, KeyId, KeyNumber, KeyRecord, KeyTerms, SecretRecord, Spent};
use metering_core::backend::decision::{KeyWrite, MeterWrite, OldSecrets};
use metering_core::charging::{KeyMeter, Window};
use metering_core::money::AlertLevel;
use metering_core::{AccountId, RateLimits, Timestamp};

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::record::{self, Record, put, table};
use crate::row::{Reader, Row};
use crate::table::Column::{Account, Own};
use crate::table::Table;
use crate::value::Value;
use crate::values;

impl Record for Key {
    const TABLE: Table = Table {
        name: "api_key",
        key: &["account", "number"],
        columns: &[
            Account("account"),
            Own("number"),
            Own("{key_id}"),
            Own("parent"),
            Own("name"),
            Own("scopes"),
            Own("routes"),
            Own("networks"),
            Own("expires_at"),
            Own("disabled"),
            Own("requests_per_minute"),
            Own("requests_per_day"),
            Own("max_in_flight"),
            Own("{budget}"),
            Own("budget_reset"),
            Own("created_at"),
            Own("leaked_at"),
            Own("revoked_at"),
            Own("alert_below"),
            Own("tokens_per_minute"),
            Own("hint"),
        ],
    };

    fn values(&self) -> Result<Vec<Value>> {
        let Self { id, number, account, parent, terms, created_at, leaked_at, revoked_at, hint } = self;
        let KeyTerms { name, scopes, routes, networks, expires_at, disabled, limits, max_in_flight, budget, .. } =
            terms;
        let (limit, reset) = (budget.map(|budget| budget.limit), budget.and_then(|budget| budget.reset));
        let mut values = values![account, number, id, parent, name, scopes, routes, networks, expires_at, disabled];
        values.extend(values![limits.requests_per_minute, limits.requests_per_day, max_in_flight, limit, reset]);
        values.extend(values![created_at, leaked_at, revoked_at, terms.alert_below, terms.tokens_per_minute, hint]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (account, number, id, parent) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let (name, scopes, routes, networks) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let (expires_at, disabled) = (row.next()?, row.next()?);
        let limits = RateLimits { requests_per_minute: row.next()?, requests_per_day: row.next()? };
        let (max_in_flight, limit, reset): (_, Option<_>, _) = (row.next()?, row.next()?, row.next()?);
        let budget = limit.map(|limit| Budget { limit, reset });
        let (created_at, leaked_at, revoked_at) = (row.next()?, row.next()?, row.next()?);
        let (alert_below, tokens_per_minute, hint) = (row.next()?, row.next()?, row.next()?);
        let terms = KeyTerms {
            name,
            scopes,
            routes,
            networks,
            expires_at,
            disabled,
            limits,
            tokens_per_minute,
            max_in_flight,
            budget,
            alert_below,
        };
        Ok(Self { id, number, account, parent, terms, created_at, leaked_at, revoked_at, hint })
    }
}

/// Deletes what counts against the terms of a key.
pub(crate) const DELETE_METER: &str = "DELETE FROM key_meter WHERE account = ?1 AND key = ?2";

/// The usage that counts towards the terms of a key.
type MeterRow = (AccountId, KeyNumber, KeyMeter);

impl Record for MeterRow {
    const TABLE: Table = table!("key_meter" by ["account", "key"] {
        Account(account), Own(key), Own(spent_since), Own(spent), Own(minute), Own(minute_count), Own(day),
        Own(day_count), Own(raised)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let (account, key, KeyMeter { spent: Spent { since, amount }, raised, minute, day }) = self;
        let mut values = values![account, key, since, amount, minute.index, minute.count];
        values.extend(values![day.index, day.count, raised.number()]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (account, key) = (row.next()?, row.next()?);
        let spent = Spent { since: row.next()?, amount: row.next()? };
        let minute = Window { index: row.next()?, count: row.next()? };
        let day = Window { index: row.next()?, count: row.next()? };
        Ok((account, key, KeyMeter { spent, raised: alert_level(row)?, minute, day }))
    }
}

table! {
    "key_secret" by ["hash"] of SecretRecord {
        Own(hash), Account(account), Own(key), Own(created_at), Own(expires_at), Own(revoked_at), Own(hash_kind)
    }
}

/// The tables of keys and what belongs to them alone.
pub(crate) const TABLE_NAMES: [&str; 2] = [Key::TABLE.name, MeterRow::TABLE.name];

/// Keys with their meters, if they have one.
pub(crate) const TABLES: &str =
    "api_key LEFT JOIN key_meter ON key_meter.account = api_key.account AND key_meter.key = api_key.number";

/// How many columns [`columns`] has.
pub(crate) const COLUMN_COUNT: usize = Key::TABLE.columns.len() + MeterRow::TABLE.columns.len();

/// The columns that [`metered`] reads from [`TABLES`].
pub(crate) fn columns() -> String {
    format!("{}, {}", Key::TABLE.column_list(), MeterRow::TABLE.column_list())
}

/// A key, and what counts against its terms.
pub type Metered = (Key, Option<KeyMeter>);

/// Reads the columns of a key and its meter.
///
/// # Errors
/// When the row is corrupt.
pub fn metered(row: &Row) -> Result<Metered> {
    let first = Key::TABLE.columns.len();
    let has_meter = row.get::<Option<KeyNumber>>(first + 1)?.is_some();
    let meter = has_meter.then(|| MeterRow::of_row_at(row, first)).transpose()?;
    Ok((Key::of_row(row)?, meter.map(|(_, _, meter)| meter)))
}

/// The query for the keys of the account with the row number `?1` that match, which [`metered`] reads.
#[must_use]
pub fn query(rest: &str) -> String {
    format!("SELECT {} FROM {TABLES} WHERE api_key.account = ?1 AND {rest}", columns())
}

/// The keys of the account with this row number that match. In `rest` the number is `?1`.
async fn select(db: &mut dyn Executor, rest: &str, values: &[Value]) -> Result<Vec<Metered>> {
    db.query(&query(rest), values).await?.iter().map(metered).collect()
}

/// Whether any key has, or ever had, this secret.
pub async fn is_secret_in_use(db: &mut dyn Executor, secret: &KeyHash) -> Result<bool> {
    Ok(stored_secret(db, secret).await?.is_some())
}

/// The row number of the account of a secret and the number of its key, whether it was revoked, and the end of its grace
/// period.
async fn stored_secret(
    db: &mut dyn Executor,
    secret: &KeyHash,
) -> Result<Option<(i64, KeyNumber, bool, Option<Timestamp>)>> {
    let sql = "SELECT account, key, revoked_at IS NOT NULL, expires_at FROM key_secret WHERE hash = ?1";
    let rows = db.query(sql, &values![secret]).await?;
    rows.first().map(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).transpose()
}

/// The key that has, or had, a secret.
pub async fn of_secret(db: &mut dyn Executor, secret: &KeyHash) -> Result<Option<Key>> {
    let Some((row, number, ..)) = stored_secret(db, secret).await? else { return Ok(None) };
    by_number(db, row, number).await.map(Some)
}

/// The row number of the account of a secret that is neither revoked nor expired, and the number of its key, with the
/// end of the secret's grace period. The account may be revoked.
pub async fn working_secret(
    db: &mut dyn Executor,
    secret: &KeyHash,
    now: Timestamp,
) -> Result<Option<(i64, KeyNumber, Option<Timestamp>)>> {
    let found = stored_secret(db, secret).await?;
    let works =
        |(.., is_revoked, ends_at): &(_, _, bool, Option<Timestamp>)| !is_revoked && ends_at.is_none_or(|at| now < at);
    Ok(found.filter(works).map(|(row, number, _, ends_at)| (row, number, ends_at)))
}

/// The key with this number, which another row names.
pub async fn by_number(db: &mut dyn Executor, row: i64, number: KeyNumber) -> Result<Key> {
    let missing = || corrupt(format_args!("key {} of account {row} is missing", number.get()));
    numbered(db, row, number).await?.map(|(key, _)| key).ok_or_else(missing)
}

/// The key with this number, revoked or not, unless it was deleted.
pub async fn numbered(db: &mut dyn Executor, row: i64, number: KeyNumber) -> Result<Option<Metered>> {
    Ok(select(db, "api_key.number = ?2", &values![row, number]).await?.pop())
}

/// The query for the secrets of a key that do not expire. A secret in its grace period does, and so does an access token
/// of OAuth. The secrets of a key that leaked are revoked.
pub const LASTING_SECRETS: &str = "SELECT s.hash, s.created_at FROM account a {join} key_secret s ON s.account = a.id \
     WHERE a.org_id = ?1 AND a.revoked_at IS NULL AND s.key = ?2 AND s.revoked_at IS NULL AND s.expires_at IS NULL";

/// The newest secret of an account's first key, unless it is revoked.
pub async fn first_secret(db: &mut dyn Executor, account: &AccountId) -> Result<Option<KeyHash>> {
    lasting_secret(db, account, KeyNumber::FIRST).await
}

/// The newest secret of a key that does not expire, unless it is revoked.
pub async fn lasting_secret(db: &mut dyn Executor, account: &AccountId, key: KeyNumber) -> Result<Option<KeyHash>> {
    let rows = db.query(LASTING_SECRETS, &values![account, key]).await?;
    let secret = |row: &Row| Ok((row.get::<Timestamp>(1)?, row.get(0)?));
    let secrets = rows.iter().map(secret).collect::<Result<Vec<(_, KeyHash)>>>()?;
    Ok(secrets.into_iter().max_by_key(|(created_at, _)| *created_at).map(|(_, hash)| hash))
}

/// The key with this id, revoked or not.
pub async fn by_id(db: &mut dyn Executor, row: i64, id: &KeyId) -> Result<Option<Metered>> {
    Ok(select(db, "api_key.{key_id} = ?2", &values![row, id]).await?.pop())
}

/// A key and its parents, up to the account's first key. Empty if there is no such key.
pub async fn chain(db: &mut dyn Executor, row: i64, number: KeyNumber) -> Result<Vec<Key>> {
    let sql = format!(
        "WITH RECURSIVE above (number, parent, place) AS ( \
           SELECT number, parent, 0 FROM api_key WHERE account = ?1 AND number = ?2 \
           UNION ALL SELECT p.number, p.parent, b.place + 1 FROM above b \
             JOIN api_key p ON p.account = ?1 AND p.number = b.parent AND p.number < b.number) \
         SELECT {} FROM above b JOIN api_key ON api_key.account = ?1 AND api_key.number = b.number ORDER BY b.place",
        Key::TABLE.column_list()
    );
    db.query(&sql, &values![row, number]).await?.iter().map(Key::of_row).collect()
}

/// The keys of an account that are not revoked, by number, from a number on, at most `most`.
pub async fn unrevoked(db: &mut dyn Executor, row: i64, from: i64, most: i64) -> Result<Vec<Metered>> {
    let rest = "api_key.number >= ?2 AND api_key.revoked_at IS NULL ORDER BY api_key.number LIMIT ?3";
    select(db, rest, &values![row, from, most]).await
}

/// All keys of an account that are not revoked, by number.
pub async fn all_unrevoked(db: &mut dyn Executor, row: i64) -> Result<Vec<Key>> {
    let found = unrevoked(db, row, 0, i64::MAX).await?;
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

/// Writes a key, the changes of its secrets, its meter and its event. Unless the account was just inserted, the caller
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
    put(db, std::slice::from_ref(key)).await?;
    if let Some(secret) = secret {
        let sql = "INSERT INTO key_secret (hash, account, key, created_at) VALUES (?1, ?2, ?3, ?4)";
        db.execute(sql, &[values![secret, row, key.number, written_at]]).await?;
        delete_old_secrets(db, *row, key.number, *written_at).await?;
    }
    match meter {
        MeterWrite::Keep => {}
        MeterWrite::Set(meter) => put(db, &[(key.account.clone(), key.number, *meter)]).await.map(drop)?,
        MeterWrite::Remove => db.execute(DELETE_METER, &[values![row, key.number]]).await.map(drop)?,
    }
    db.write_events(Some(*row), event.as_slice()).await
}

/// Deletes the secrets of a key that ended some time ago, except the newest [`Key::MAX_ENDED_SECRETS`].
async fn delete_old_secrets(db: &mut dyn Executor, row: i64, key: KeyNumber, now: Timestamp) -> Result<()> {
    let until = now.saturating_sub(Key::ENDED_RETENTION);
    db.execute(&old_secrets(), &[values![row, key, until]]).await.map(drop)
}

/// Deletes the oldest secrets of a key that ended by `?3`. Two parts, each with its own index.
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

/// Inserts keys with their meters, each after its parent, and returns how many.
pub async fn insert(db: &mut dyn Executor, keys: &[KeyRecord]) -> Result<u64> {
    let of = |record: &KeyRecord| record.key.clone();
    let written = record::insert(db, &keys.iter().map(of).collect::<Vec<_>>()).await?;
    let meter = |KeyRecord { key, meter }: &KeyRecord| Some((key.account.clone(), key.number, (*meter)?));
    record::insert(db, &keys.iter().filter_map(meter).collect::<Vec<_>>()).await?;
    Ok(written)
}

/// The secrets of an account's keys that are not revoked, or were revoked with the account.
pub async fn secrets(db: &mut dyn Executor, account: &AccountId) -> Result<Vec<SecretRecord>> {
    let rest = "WHERE account = (SELECT a.id FROM account a WHERE a.org_id = ?1) AND (revoked_at IS NULL \
                OR revoked_at = (SELECT a.revoked_at FROM account a WHERE a.org_id = ?1)) ORDER BY key, hash";
    record::list(db, rest, &values![account]).await
}

/// Reads the level of the alert of a budget.
fn alert_level(row: &mut Reader<'_>) -> Result<AlertLevel> {
    let number: i64 = row.next()?;
    let level = u8::try_from(number).ok().and_then(AlertLevel::from_number);
    level.ok_or_else(|| row.corrupt(format_args!("{number} is not a level of an alert")))
}
