//! Imports keys, their meters and their secrets.

use metering_core::access::Key;
use metering_core::charging::KeyMeter;
use metering_core::transfer::{KeyRecord, Record, SecretRecord};
use metering_core::{Credits, Timestamp};

use super::books::{column, of_kind};
use crate::error::Result;
use crate::rows::{execute, key_meter_columns};
use crate::transactions::serialized::SerializedWrite;

const KEYS: &str = "INSERT INTO api_key (account, number, id, parent, name, scopes, routes, networks, expires_at, \
     disabled, requests_per_minute, requests_per_day, max_in_flight, budget, budget_reset, created_at, leaked_at, \
     revoked_at, alert_below) \
     SELECT a.id, new.number, new.id, new.parent, new.name, new.scopes, new.routes, new.networks, new.expires_at, \
       new.disabled, new.per_minute, new.per_day, new.max_in_flight, new.budget, new.budget_reset, new.created_at, \
       new.leaked_at, new.revoked_at, new.alert_below \
     FROM unnest($1::TEXT[], $2::BIGINT[], $3::TEXT[], $4::BIGINT[], $5::TEXT[], $6::TEXT[], $7::TEXT[], $8::TEXT[], \
       $9::BIGINT[], $10::BOOLEAN[], $11::BIGINT[], $12::BIGINT[], $13::BIGINT[], $14::BIGINT[], $15::TEXT[], \
       $16::BIGINT[], $17::BIGINT[], $18::BIGINT[], $19::BIGINT[]) \
     AS new (org_id, number, id, parent, name, scopes, routes, networks, expires_at, disabled, per_minute, per_day, \
       max_in_flight, budget, budget_reset, created_at, leaked_at, revoked_at, alert_below) \
     JOIN account a ON a.org_id = new.org_id";

const METERS: &str = "INSERT INTO key_meter (account, key, spent_since, spent, minute, minute_count, day, day_count, \
     raised) \
     SELECT a.id, new.key, new.since, new.spent, new.minute, new.minute_count, new.day, new.day_count, new.raised \
     FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], \
       $8::BIGINT[], $9::BIGINT[]) AS new (org_id, key, since, spent, minute, minute_count, day, day_count, raised) \
     JOIN account a ON a.org_id = new.org_id";

const SECRETS: &str = "INSERT INTO key_secret (hash, account, key, created_at, expires_at, revoked_at, hash_kind) \
     SELECT new.hash, a.id, new.key, new.created_at, new.expires_at, new.revoked_at, \
       new.hash_kind \
     FROM unnest($1::BYTEA[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::TEXT[]) \
     AS new (hash, org_id, key, created_at, expires_at, revoked_at, hash_kind) \
     JOIN account a ON a.org_id = new.org_id";

fn millis(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::unix_millis)
}

/// A key is made after its parent, so that each batch finds the parents of its keys.
pub(super) async fn keys(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&KeyRecord> = of_kind!(records, Key).into_iter().map(|record| &**record).collect();
    let keys: Vec<&Key> = column!(records, record => &record.key);
    let budgets = column!(keys, key => key.terms.budget);
    let written = execute(
        write.client(),
        KEYS,
        &[
            &column!(keys, key => key.account.as_str()),
            &column!(keys, key => i64::from(key.number.get())),
            &column!(keys, key => key.id.as_str()),
            &column!(keys, key => key.parent.map(|parent| i64::from(parent.get()))),
            &column!(keys, key => key.terms.name.as_str()),
            &column!(keys, key => key.terms.scopes.to_string()),
            &column!(keys, key => key.terms.routes.to_string()),
            &column!(keys, key => key.terms.networks.to_string()),
            &column!(keys, key => millis(key.terms.expires_at)),
            &column!(keys, key => key.terms.disabled),
            &column!(keys, key => i64::from(key.terms.limits.requests_per_minute)),
            &column!(keys, key => i64::from(key.terms.limits.requests_per_day)),
            &column!(keys, key => i64::from(key.terms.max_in_flight)),
            &column!(budgets, budget => budget.map(|budget| budget.limit.atoms())),
            &column!(budgets, budget => budget.and_then(|budget| budget.reset).map(|reset| reset.as_str())),
            &column!(keys, key => key.created_at.unix_millis()),
            &column!(keys, key => millis(key.leaked_at)),
            &column!(keys, key => millis(key.revoked_at)),
            &column!(keys, key => key.terms.alert_below.map(Credits::atoms)),
        ],
    )
    .await?;
    let meters: Vec<(&Key, KeyMeter)> =
        records.iter().filter_map(|record| Some((&record.key, record.meter?))).collect();
    let column = |index: usize| column!(meters, (_, meter) => key_meter_columns(meter)[index]);
    execute(
        write.client(),
        METERS,
        &[
            &column!(meters, (key, _) => key.account.as_str()),
            &column!(meters, (key, _) => i64::from(key.number.get())),
            &column(0),
            &column(1),
            &column(2),
            &column(3),
            &column(4),
            &column(5),
            &column(6),
        ],
    )
    .await?;
    Ok(written)
}

/// Secrets come last, when all that they allow to charge is there. A node learns nothing of an account before it knows a
/// secret of it, so its `meter.access` need not change.
pub(super) async fn secrets(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&SecretRecord> = of_kind!(records, Secret);
    execute(
        write.client(),
        SECRETS,
        &[
            &column!(records, secret => secret.hash.as_bytes().as_slice()),
            &column!(records, secret => secret.account.as_str()),
            &column!(records, secret => i64::from(secret.key.get())),
            &column!(records, secret => secret.created_at.unix_millis()),
            &column!(records, secret => millis(secret.expires_at)),
            &column!(records, secret => millis(secret.revoked_at)),
            &column!(records, secret => secret.hash_kind.as_str()),
        ],
    )
    .await
}
