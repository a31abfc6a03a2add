//! Imports accounts of other services, and reads the hashes of secrets for an export.

use metering_core::access::{KeyHash, KeyNumber};
use metering_core::backend::decision::{self, Decided, ImportChanges, ImportFacts, KeyWrite, MeterWrite, OldSecrets};
use metering_core::imports::{AccountImported, ImportMode, ImportedAccount};
use metering_core::transfer::SecretRecord;
use metering_core::usage::DailyTotal;
use metering_core::{AccountId, Timestamp, UsageLine};
use rusqlite::{Connection, params};

use crate::access::{accounts, keys};
use crate::error::{Result, store_error};
use crate::journal::Snapshot;
use crate::money::ledger;
use crate::rows::{all, first, parse, timestamp};
use crate::script::Statements;
use metering_sql::owners::owner_facts;
use metering_sql::{numbered, payments};

/// Imports accounts in order.
pub(crate) fn import(
    snapshot: &Snapshot<'_>,
    accounts: Vec<ImportedAccount>,
    mode: ImportMode,
    now: Timestamp,
) -> Result<Vec<AccountImported>> {
    let import = |new: ImportedAccount| {
        let facts = facts(snapshot, &new)?;
        match decision::import_account(new, facts, now) {
            Decided::Accepted(changes) => {
                if mode == ImportMode::Write {
                    write(snapshot, &changes)?;
                }
                let ImportChanges { account, conflicts, .. } = *changes;
                Ok(AccountImported::Created { account, conflicts })
            }
            Decided::Refused(refusal) => Ok(refusal),
        }
    };
    accounts.into_iter().map(import).collect()
}

fn facts(snapshot: &Snapshot<'_>, new: &ImportedAccount) -> Result<ImportFacts> {
    let mut facts = ImportFacts {
        account: accounts::by_id(snapshot, &new.id)?.map(|(_, account)| account),
        owner: metering_sql::now(owner_facts(
            &mut Statements::new(snapshot),
            new.email.as_ref(),
            new.payer.as_ref().map(|payer| &payer.address),
        ))?,
        ..ImportFacts::default()
    };
    let holder = "SELECT a.org_id FROM key_secret s JOIN account a ON a.id = s.account WHERE s.hash = ?1";
    let mut holder = snapshot.prepare_cached(holder).map_err(store_error)?;
    for secret in new.secrets() {
        let found = first(&mut holder, [secret.hash.as_bytes()], |row| Ok(parse(&row.get::<_, String>(0)?)))?;
        facts.holders.extend(found);
    }
    let mut used = snapshot.prepare_cached("SELECT 1 FROM api_key WHERE public_id = ?1").map_err(store_error)?;
    for id in decision::imported_key_ids(new) {
        if used.exists([id.as_str()]).map_err(store_error)? {
            facts.key_ids_in_use.push(id);
        }
    }
    for transaction in &new.used_transactions {
        let record = metering_sql::now(payments::by_tx(&mut Statements::new(snapshot), &transaction.tx))?;
        facts.used.extend(record.map(|record| (transaction.tx, record.account)));
    }
    Ok(facts)
}

fn write(connection: &Snapshot<'_>, changes: &ImportChanges) -> Result<()> {
    let ImportChanges { account, keys, secrets, entries, usage, payments, conflicts: _ } = changes;
    let row = accounts::insert_rows(connection, account)?;
    for record in keys {
        metering_sql::now(metering_sql::keys::write(
            &mut Statements::new(connection),
            &KeyWrite {
                row,
                key: record.key.clone(),
                old_secrets: OldSecrets::Keep,
                secret: None,
                meter: record.meter.map_or(MeterWrite::Keep, MeterWrite::Set),
                written_at: account.created_at,
                event: None,
            },
        ))?;
    }
    secrets.iter().try_for_each(|secret| insert_secret(connection, row, secret))?;
    for entry in entries {
        ledger::append(connection, row, &entry.entry, entry.created_at)?;
    }
    usage.iter().try_for_each(|total| insert_usage(connection, row, total))?;
    metering_sql::now(numbered::insert(&mut Statements::new(connection), payments)).map(drop)
}

fn insert_secret(connection: &Connection, row: i64, secret: &SecretRecord) -> Result<()> {
    let sql = "INSERT INTO key_secret (hash, account, key, created_at, expires_at, revoked_at, hash_kind) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let SecretRecord { hash, hash_kind, account: _, key, created_at, expires_at, revoked_at } = secret;
    let [expires_at, revoked_at] = [expires_at, revoked_at].map(|at| at.map(Timestamp::unix_millis));
    let created_at = created_at.unix_millis();
    let values = params![hash.as_bytes(), row, key.get(), created_at, expires_at, revoked_at, hash_kind.as_str()];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

/// The account is new, so the journal has no usage of it.
fn insert_usage(connection: &Connection, row: i64, total: &DailyTotal) -> Result<()> {
    let line = line(connection, &total.line)?;
    let sql = "INSERT INTO usage_daily (day, account, line, key, calls, amount) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let calls = i64::try_from(total.calls).unwrap_or(i64::MAX);
    let values = params![total.day.unix_days(), row, line, total.key.get(), calls, total.credits_used.atoms()];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

fn line(connection: &Connection, line: &UsageLine) -> Result<i64> {
    let values = params![&*line.route_template, &*line.http_method, line.source.as_str()];
    let insert =
        "INSERT INTO usage_line (route_template, http_method, source) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    connection.prepare_cached(insert).and_then(|mut s| s.execute(values)).map_err(store_error)?;
    let select = "SELECT id FROM usage_line WHERE route_template = ?1 AND http_method = ?2 AND source = ?3";
    connection.prepare_cached(select).and_then(|mut s| s.query_row(values, |row| row.get(0))).map_err(store_error)
}

/// The secrets of an account's keys that are not revoked, or were revoked with the account.
pub(crate) fn secrets(connection: &Connection, account: &AccountId) -> Result<Vec<SecretRecord>> {
    let sql = "SELECT s.hash, s.key, s.created_at, s.expires_at, s.hash_kind, s.revoked_at FROM account a \
               CROSS JOIN key_secret s ON s.account = a.id \
               WHERE a.org_id = ?1 AND (s.revoked_at IS NULL OR s.revoked_at = a.revoked_at) \
               ORDER BY s.key, s.hash";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    all(&mut statement, [account.as_str()], |row| {
        let (hash, key) = (KeyHash::from_bytes(row.get(0)?), KeyNumber::new(row.get(1)?));
        let (created_at, expires_at) = (timestamp(row, 2)?, keys::optional_time(row, 3)?);
        let (kind, revoked_at): (String, _) = (row.get(4)?, keys::optional_time(row, 5)?);
        let record = |hash_kind| SecretRecord {
            hash,
            hash_kind,
            account: account.clone(),
            key,
            created_at,
            expires_at,
            revoked_at,
        };
        Ok(parse(&kind).map(record))
    })
}
