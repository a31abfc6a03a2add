//! The holder of a secret: its account and the chain of its keys.

use std::collections::HashSet;

use metering_core::access::{KeyHash, KeyHolder, KeyNumber};
use metering_core::charging::{HoldId, KeyMeter, RateWindows, Window};
use metering_core::{AccountId, Timestamp};

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::keys::{self, Metered};
use crate::row::Row;
use crate::value::Value;
use crate::{accounts, values};

/// The query for the chain of the secret `?1`, from its own key up, with the account in each row.
#[must_use]
pub fn holder_query() -> String {
    format!(
        "WITH RECURSIVE chain (account, number, expires_at, place) AS ( \
           SELECT s.account, s.key, s.expires_at, 0 FROM key_secret s WHERE s.hash = ?1 AND s.revoked_at IS NULL \
           UNION ALL SELECT h.account, p.parent, h.expires_at, h.place + 1 FROM chain h \
             JOIN api_key p ON p.account = h.account AND p.number = h.number AND p.parent < p.number) \
         SELECT {}, h.expires_at, m.minute, m.minute_count, m.day, m.day_count, {} \
         FROM chain h {{join}} api_key ON api_key.account = h.account AND api_key.number = h.number \
         {{join}} account a ON a.id = h.account {{join}} meter m ON m.account = a.id \
         LEFT JOIN key_meter ON key_meter.account = api_key.account AND key_meter.key = api_key.number \
         WHERE a.revoked_at IS NULL ORDER BY h.place",
        keys::columns(),
        accounts::COLUMNS
    )
}

/// The query for those of the secrets `?1` that work at `?2`.
pub const LIVE: &str = "WITH RECURSIVE chain (hash, account, number) AS ( \
       SELECT s.hash, s.account, s.key FROM key_secret s {join} account a ON a.id = s.account \
       WHERE s.hash {in_bytes ?1} AND s.revoked_at IS NULL AND a.revoked_at IS NULL \
       AND (s.expires_at IS NULL OR s.expires_at > ?2) \
       UNION ALL SELECT h.hash, h.account, p.parent FROM chain h \
         JOIN api_key p ON p.account = h.account AND p.number = h.number AND p.parent < p.number) \
     SELECT h.hash FROM chain h {join} api_key k ON k.account = h.account AND k.number = h.number GROUP BY h.hash \
     HAVING min(CASE WHEN k.disabled OR k.leaked_at IS NOT NULL OR k.revoked_at IS NOT NULL OR k.expires_at <= ?2 \
       THEN 0 ELSE 1 END) = 1";

/// The holder of a secret; `None` if it is unknown or revoked, or its account is revoked.
pub async fn holder(db: &mut dyn Executor, secret: &KeyHash) -> Result<Option<KeyHolder>> {
    let rows = db.query(&holder_query(), &values![secret]).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let (row, account) = accounts::account(db, &first.skip(keys::COLUMN_COUNT + 5))?;
    let window = |column| Ok::<_, crate::Fault>(Window { index: first.get(column)?, count: first.get(column + 1)? });
    let stored = RateWindows { minute: window(keys::COLUMN_COUNT + 1)?, day: window(keys::COLUMN_COUNT + 3)? };
    let of_key = |row: &Row| {
        let (key, meter): Metered = keys::metered(row)?;
        let KeyMeter { minute, day, .. } = meter.unwrap_or_default();
        Ok((key, RateWindows { minute, day }))
    };
    let keys = rows.iter().map(of_key).collect::<Result<Vec<_>>>()?;
    if let Some(missing) = keys.last().and_then(|(key, _)| key.parent) {
        return Err(corrupt(format_args!("key {} of account {} is missing", missing.get(), account.id)));
    }
    let (chain, key_windows) = keys.into_iter().unzip();
    let (secret_expires_at, windows) = (first.get(keys::COLUMN_COUNT)?, db.windows(row, stored)?);
    Ok(Some(KeyHolder { account, chain, secret_expires_at, windows, key_windows }))
}

/// Which secrets work at `now`, in their order.
pub async fn live(db: &mut dyn Executor, secrets: &[KeyHash], now: Timestamp) -> Result<Vec<bool>> {
    let unique: HashSet<[u8; 32]> = secrets.iter().map(|secret| *secret.as_bytes()).collect();
    let hashes = Value::ManyBytes(unique.iter().map(|hash| hash.to_vec()).collect());
    let rows = db.query(LIVE, &[hashes, Value::Integer(Some(now.unix_millis()))]).await?;
    let live = rows.iter().map(|row| row.get(0)).collect::<Result<HashSet<[u8; 32]>>>()?;
    Ok(secrets.iter().map(|secret| live.contains(secret.as_bytes())).collect())
}

/// The account and number of the keys with hashes from `?1` to `?2`.
pub const BY_HASHES: &str = "SELECT a.org_id, s.key FROM key_secret s {join} account a ON a.id = s.account \
     WHERE s.hash >= ?1 AND s.hash <= ?2 ORDER BY s.hash LIMIT 20";

/// The keys that the id of a charged request may name.
pub async fn of_request(db: &mut dyn Executor, id: &HoldId) -> Result<Vec<(AccountId, KeyNumber)>> {
    let Some(hashes) = id.key_hashes() else { return Ok(Vec::new()) };
    let rows = db.query(BY_HASHES, &values![hashes.start(), hashes.end()]).await?;
    let key = |row: &Row| Ok::<_, crate::Fault>((row.get(0)?, row.get(1)?));
    rows.iter().map(key).collect()
}
