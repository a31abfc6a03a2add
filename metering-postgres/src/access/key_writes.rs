//! Writes keys, their secrets and their meters. Reading them is in `keys`, which the charge path needs too.

use metering_core::access::{Key, KeyTerms};
use metering_core::backend::decision::{KeyChangeWrites, KeyWrite, MeterWrite, OldSecrets};
use metering_core::charging::KeyMeter;
use metering_core::{Credits, Timestamp};

use crate::access::ended_keys;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::events::outbox;
use crate::rows::{Values, execute, key_meter_columns};
use crate::transactions::serialized::SerializedWrite;

/// Writes a changed key, and those that are revoked with it.
pub(crate) async fn write_change(write: &SerializedWrite<'_>, changes: KeyChangeWrites<i64>) -> Result<Key> {
    for below in changes.below {
        write_key(write, below).await?;
    }
    write_key(write, changes.key).await
}

/// Writes a key, what becomes of its secrets, and its meter. The account's meter is locked. All nodes read the keys of
/// the account again before their next charge.
pub(crate) async fn write_key(write: &SerializedWrite<'_>, change: KeyWrite<i64>) -> Result<Key> {
    let KeyWrite { row, key, old_secrets, secret, meter, written_at, event } = change;
    let (client, number) = (write.client(), i64::from(key.number.get()));
    match old_secrets {
        OldSecrets::Keep => {}
        OldSecrets::Revoke => {
            let sql = "UPDATE key_secret SET revoked_at = $3 WHERE account = $1 AND key = $2 AND revoked_at IS NULL";
            execute(client, sql, &[&row, &number, &written_at.unix_millis()]).await?;
        }
        OldSecrets::EndGrace => {
            let sql = "UPDATE key_secret SET revoked_at = $3 \
                       WHERE account = $1 AND key = $2 AND revoked_at IS NULL AND expires_at IS NOT NULL";
            execute(client, sql, &[&row, &number, &written_at.unix_millis()]).await?;
        }
        OldSecrets::ExpireAt(at) => {
            let sql = "UPDATE key_secret SET expires_at = least(coalesce(expires_at, $3), $3) \
                       WHERE account = $1 AND key = $2 AND revoked_at IS NULL";
            execute(client, sql, &[&row, &number, &at.unix_millis()]).await?;
        }
    }
    upsert(client, row, &key).await?;
    if let Some(secret) = secret {
        let sql = "INSERT INTO key_secret (hash, account, key, created_at) VALUES ($1, $2, $3, $4)";
        let hash = secret.as_bytes().as_slice();
        execute(client, sql, &[&hash, &row, &number, &written_at.unix_millis()]).await?;
        ended_keys::delete_secrets(client, row, number, written_at).await?;
    }
    match meter {
        MeterWrite::Keep => {}
        MeterWrite::Set(meter) => set_meter(client, row, number, &meter).await?,
        MeterWrite::Remove => {
            execute(client, "DELETE FROM key_meter WHERE account = $1 AND key = $2", &[&row, &number]).await?;
        }
    }
    draw_access(client, row).await?;
    outbox::write(client, row, event.as_slice()).await?;
    Ok(key)
}

/// Draws the account's `meter.access` anew: what nodes know of its keys and secrets has changed.
pub(crate) async fn draw_access<C: GenericClient>(client: &C, account: i64) -> Result<()> {
    execute(client, "UPDATE meter SET access = DEFAULT WHERE account = $1", &[&account]).await.map(drop)
}

async fn upsert<C: GenericClient>(client: &C, row: i64, key: &Key) -> Result<()> {
    let sql = "INSERT INTO api_key (account, number, id, parent, name, scopes, routes, networks, expires_at, disabled, \
               requests_per_minute, requests_per_day, max_in_flight, budget, budget_reset, created_at, leaked_at, \
               revoked_at, alert_below) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) \
               ON CONFLICT (account, number) DO UPDATE SET name = excluded.name, scopes = excluded.scopes, \
               routes = excluded.routes, networks = excluded.networks, expires_at = excluded.expires_at, \
               disabled = excluded.disabled, requests_per_minute = excluded.requests_per_minute, \
               requests_per_day = excluded.requests_per_day, max_in_flight = excluded.max_in_flight, \
               budget = excluded.budget, budget_reset = excluded.budget_reset, leaked_at = excluded.leaked_at, \
               revoked_at = excluded.revoked_at, alert_below = excluded.alert_below";
    let KeyTerms { name, scopes, routes, networks, expires_at, disabled, limits, max_in_flight, budget, alert_below } =
        &key.terms;
    let millis = |at: Option<Timestamp>| at.map(Timestamp::unix_millis);
    let numbers =
        [key.number.get(), limits.requests_per_minute, limits.requests_per_day, *max_in_flight].map(i64::from);
    let budget_reset = budget.and_then(|budget| budget.reset).map(|reset| reset.as_str());
    let values: Values<'_> = &[
        &row,
        &numbers[0],
        &key.id.as_str(),
        &key.parent.map(|parent| i64::from(parent.get())),
        &name.as_str(),
        &scopes.to_string(),
        &routes.to_string(),
        &networks.to_string(),
        &millis(*expires_at),
        disabled,
        &numbers[1],
        &numbers[2],
        &numbers[3],
        &budget.map(|budget| budget.limit.atoms()),
        &budget_reset,
        &key.created_at.unix_millis(),
        &millis(key.leaked_at),
        &millis(key.revoked_at),
        &alert_below.map(Credits::atoms),
    ];
    execute(client, sql, values).await.map(drop)
}

async fn set_meter<C: GenericClient>(client: &C, account: i64, key: i64, meter: &KeyMeter) -> Result<()> {
    let sql = "INSERT INTO key_meter (account, key, spent_since, spent, minute, minute_count, day, day_count, raised) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (account, key) DO UPDATE \
               SET spent_since = excluded.spent_since, spent = excluded.spent, minute = excluded.minute, \
               minute_count = excluded.minute_count, day = excluded.day, day_count = excluded.day_count, \
               raised = excluded.raised";
    let [since, spent, minute, minute_count, day, day_count, raised] = key_meter_columns(meter);
    let values: Values<'_> = &[&account, &key, &since, &spent, &minute, &minute_count, &day, &day_count, &raised];
    execute(client, sql, values).await.map(drop)
}
