//! Imports accounts and their books: one statement per table and batch.

use std::collections::HashMap;

use metering_core::access::Email;
use metering_core::charging::{Delivery, Hold};
use metering_core::money::Refill;
use metering_core::transfer::{AccountRecord, ActivityRecord, IdempotencyRecord, LedgerRecord, Record, VolumeRecord};
use metering_core::usage::DailyTotal;
use metering_core::{AccountId, Credits, Day};
use metering_sql::refills;

use crate::charging::entry::{Entry, Path};
use crate::charging::holds::path_column;
use crate::charging::tail::Folds;
use crate::error::Result;
use crate::rows::{all, email_columns, execute, parsed};
use crate::script::Statements;
use crate::transactions::serialized::SerializedWrite;
use crate::usage::activity::{BLOCKS, BlockRows};

const ACCOUNTS: &str = "INSERT INTO account \
     (id, org_id, agent_name, email, email_folded, payer_address, payer_chain_id, created_at, revoked_at, \
     email_credits, email_verified_at, refilled_on) \
     SELECT * FROM unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::BYTEA[], $7::BIGINT[], \
     $8::BIGINT[], $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[])";

const METERS: &str = "INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, \
     requests_per_day, minute, minute_count, day, day_count, entries, alert_below, alert_raised) \
     SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], \
     $7::BIGINT[], $8::BIGINT[], $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[], $13::BIGINT[], $14::BIGINT[])";

/// An account's recent entries are numbered backwards from its newest number, like its usage entries; older ones are
/// numbered from the start, without gaps.
const LEDGER: &str = "INSERT INTO ledger \
     (id, account, entry, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id) \
     SELECT new.id, a.id, CASE WHEN new.newer IS NULL \
       THEN coalesce((SELECT max(l.entry) FROM ledger l WHERE l.account = a.id), 0) \
            + row_number() OVER (PARTITION BY a.id ORDER BY new.id) \
       ELSE m.entries - new.newer END, \
     new.kind, new.amount, new.description, new.created_at, new.chain_id, new.hash, new.plan_id \
     FROM unnest($1::BIGINT[], $2::TEXT[], $3::BIGINT[], $4::TEXT[], $5::BIGINT[], $6::TEXT[], $7::BIGINT[], \
     $8::BIGINT[], $9::BYTEA[], $10::TEXT[]) \
     AS new (id, org_id, newer, kind, amount, description, created_at, chain_id, hash, plan_id) \
     JOIN account a ON a.org_id = new.org_id JOIN meter m ON m.account = a.id";

const USAGE: &str = "INSERT INTO usage_daily (account, day, line, key, calls, amount) \
     SELECT a.id, new.day, new.line, new.key, new.calls, new.amount \
     FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[]) \
     AS new (org_id, day, line, key, calls, amount) JOIN account a ON a.org_id = new.org_id";

const STORED_RESULTS: &str = "INSERT INTO request_id \
     (account, request_id, charged, balance, expires_at, fingerprint, tries, open_until, hold) \
     SELECT a.id, new.request_id, new.charged, new.balance, new.expires_at, new.fingerprint, new.tries, new.open_until, \
     new.hold FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BYTEA[], $7::BIGINT[], \
     $8::BIGINT[], $9::BYTEA[]) \
     AS new (org_id, request_id, charged, balance, expires_at, fingerprint, tries, open_until, hold) \
     JOIN account a ON a.org_id = new.org_id";

const HOLDS: &str = "INSERT INTO hold (id, account, key, line, amount, fallback, request_path, created_at, expires_at, \
     captured, reason, settled_at) \
     SELECT new.id, a.id, new.key, new.line, new.amount, new.fallback, new.request_path, new.created_at, \
     new.expires_at, new.captured, new.reason, new.settled_at \
     FROM unnest($1::BYTEA[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::TEXT[], \
     $8::BIGINT[], $9::BIGINT[], $10::BIGINT[], $11::TEXT[], $12::BIGINT[]) AS new (id, org_id, key, line, amount, \
     fallback, request_path, created_at, expires_at, captured, reason, settled_at) \
     JOIN account a ON a.org_id = new.org_id";

const VOLUMES: &str = "INSERT INTO route_volume (account, route_template, http_method, month, requests, returned) \
     SELECT a.id, new.route_template, new.http_method, new.month, new.requests, new.returned \
     FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[]) \
     AS new (org_id, route_template, http_method, month, requests, returned) JOIN account a ON a.org_id = new.org_id";

/// The batch as records of one kind; it has no others.
macro_rules! of_kind {
    ($records:expr, $kind:ident) => {
        $records
            .iter()
            .filter_map(|record| match record {
                Record::$kind(record) => Some(record),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
}
pub(super) use of_kind;

/// A column of a batch.
macro_rules! column {
    ($records:expr, $record:pat => $value:expr) => {
        $records.iter().map(|$record| $value).collect::<Vec<_>>()
    };
}
pub(super) use column;

/// Converts a count for its column. No count comes close to the limit.
fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) async fn accounts(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&AccountRecord> = of_kind!(records, Account).into_iter().map(|record| &**record).collect();
    let rows = write.next_ids(records.len()).await?;
    let folded = column!(records, record => record.account.held_email().map(Email::folded));
    execute(
        write.client(),
        ACCOUNTS,
        &[
            &rows,
            &column!(records, record => record.account.id.as_str()),
            &column!(records, record => record.account.agent_name.as_str()),
            &column!(records, record => record.account.email.as_ref().map(Email::as_str)),
            &folded,
            &column!(records, record => record.account.payer.as_ref().map(|payer| payer.address.as_bytes().as_slice())),
            &column!(records, record => record.account.payer.map(|payer| payer.chain_id.cast_signed())),
            &column!(records, record => record.account.created_at.unix_millis()),
            &column!(records, record => record.account.revoked_at.map(|at| at.unix_millis())),
            &column!(records, record => email_columns(record.account.email_status).0),
            &column!(records, record => email_columns(record.account.email_status).1),
            &column!(records, record => record.refilled_on.map(Day::unix_days)),
        ],
    )
    .await?;
    let amount = |of: fn(&AccountRecord) -> Credits| column!(records, record => of(record).atoms());
    let of = |of: fn(&AccountRecord) -> i64| column!(records, record => of(record));
    execute(
        write.client(),
        METERS,
        &[
            &rows,
            &amount(|record| record.account.totals.balance),
            &amount(|record| record.account.totals.purchased),
            &amount(|record| record.account.totals.granted),
            &amount(|record| record.account.totals.used),
            &of(|record| record.account.limits.requests_per_minute.into()),
            &of(|record| record.account.limits.requests_per_day.into()),
            &of(|record| record.minute.index),
            &of(|record| record.minute.count.into()),
            &of(|record| record.day.index),
            &of(|record| record.day.count.into()),
            &of(|record| number(record.entries)),
            &column!(records, record => record.account.alert.threshold.map(Credits::atoms)),
            &of(|record| record.account.alert.raised.number().into()),
        ],
    )
    .await
}

pub(super) async fn ledger(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&LedgerRecord> = of_kind!(records, Ledger);
    let payments = column!(records, record => record.entry.payment.as_ref());
    execute(
        write.client(),
        LEDGER,
        &[
            &column!(records, record => record.entry.id),
            &column!(records, record => record.entry.account.as_str()),
            &column!(records, record => record.newer.map(i64::from)),
            &column!(records, record => record.entry.kind.as_str()),
            &column!(records, record => record.entry.amount.atoms()),
            &column!(records, record => record.entry.description.as_str()),
            &column!(records, record => record.entry.created_at.unix_millis()),
            &column!(payments, payment => payment.map(|payment| payment.tx.chain_id.cast_signed())),
            &column!(payments, payment => payment.map(|payment| payment.tx.hash.as_bytes().as_slice())),
            &column!(payments, payment => payment.and_then(|payment| payment.plan_id.as_deref())),
        ],
    )
    .await
}

pub(super) async fn usage(write: &SerializedWrite<'_>, records: &[Record], lines: &[i64]) -> Result<u64> {
    let records: Vec<&DailyTotal> = of_kind!(records, Usage);
    execute(
        write.client(),
        USAGE,
        &[
            &column!(records, total => total.account.as_str()),
            &column!(records, total => total.day.unix_days()),
            &lines,
            &column!(records, total => i64::from(total.key.get())),
            &column!(records, total => number(total.calls)),
            &column!(records, total => total.credits_used.atoms()),
        ],
    )
    .await
}

/// Entries arrive by account, oldest first, and are numbered backwards from the account's newest number.
pub(super) async fn activity(write: &SerializedWrite<'_>, records: &[Record], lines: &[i64]) -> Result<u64> {
    let records: Vec<&ActivityRecord> = of_kind!(records, Activity);
    let sql = "SELECT a.org_id, a.id, m.entries FROM account a JOIN meter m ON m.account = a.id \
               WHERE a.org_id = ANY($1)";
    let mut accounts: HashMap<AccountId, (i64, i64)> = HashMap::new();
    for row in all(write.client(), sql, &[&column!(records, entry => entry.account.as_str())]).await? {
        accounts.insert(parsed(&row, 0)?, (row.try_get(1)?, row.try_get(2)?));
    }
    let (mut folds, mut written) = (Folds::default(), 0);
    for (record, line) in records.into_iter().zip(lines) {
        let Some((account, entries)) = accounts.get(&record.account) else { continue };
        let entry = Entry {
            number: entries - i64::from(record.newer),
            line: *line,
            amount: record.amount.atoms(),
            kind: record.kind,
            calls: number(record.calls),
            created_at: record.created_at.unix_millis(),
            path: Path::of(record.request_path.as_deref(), &record.line.route_template),
            key: record.key,
        };
        folds.add(*account, entry.block(), entry.pack(Vec::new())?);
        written += 1;
    }
    execute(write.client(), BLOCKS, &BlockRows::new(&folds).values()).await?;
    Ok(written)
}

pub(super) async fn idempotency_records(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&IdempotencyRecord> = of_kind!(records, Idempotency);
    execute(
        write.client(),
        STORED_RESULTS,
        &[
            &column!(records, record => record.account.as_str()),
            &column!(records, record => record.request.as_str()),
            &column!(records, record => record.result.charged.atoms()),
            &column!(records, record => record.result.balance.atoms()),
            &column!(records, record => record.expires_at.unix_millis()),
            &column!(records, record => delivery(record).map(|delivery| delivery.fingerprint.as_bytes().as_slice())),
            &column!(records, record => delivery(record).map(|delivery| i64::from(delivery.tries))),
            &column!(records, record => delivery(record).and_then(|delivery| Some(delivery.open_until?.unix_millis()))),
            &column!(records, record => record.result.hold.as_ref().map(|hold| hold.as_bytes().as_slice())),
        ],
    )
    .await
}

pub(super) async fn holds(write: &SerializedWrite<'_>, records: &[Record], lines: &[i64]) -> Result<u64> {
    let records: Vec<&Hold> = of_kind!(records, Hold).into_iter().map(|hold| &**hold).collect();
    execute(
        write.client(),
        HOLDS,
        &[
            &column!(records, hold => hold.id.as_bytes().as_slice()),
            &column!(records, hold => hold.account.as_str()),
            &column!(records, hold => i64::from(hold.key.get())),
            &lines,
            &column!(records, hold => hold.amount.atoms()),
            &column!(records, hold => hold.fallback.atoms()),
            &column!(records, hold => path_column(hold)),
            &column!(records, hold => hold.created_at.unix_millis()),
            &column!(records, hold => hold.expires_at.unix_millis()),
            &column!(records, hold => hold.settled.map(|settled| settled.captured.atoms())),
            &column!(records, hold => hold.settled.map(|settled| settled.reason.as_str())),
            &column!(records, hold => hold.settled.map(|settled| settled.at.unix_millis())),
        ],
    )
    .await
}

pub(super) async fn volumes(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&VolumeRecord> = of_kind!(records, Volume);
    execute(
        write.client(),
        VOLUMES,
        &[
            &column!(records, record => record.account.as_str()),
            &column!(records, record => &*record.route.route_template),
            &column!(records, record => &*record.route.http_method),
            &column!(records, record => record.volume.month.unix_months()),
            &column!(records, record => i64::from(record.volume.requests)),
            &column!(records, record => record.volume.returned_column()),
        ],
    )
    .await
}

pub(super) async fn refills(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&Refill> = of_kind!(records, Refill);
    for refill in &records {
        refills::set(&mut Statements(write.client()), Some(refill)).await?;
    }
    Ok(records.len() as u64)
}

fn delivery(record: &IdempotencyRecord) -> Option<&Delivery> {
    record.result.delivery.as_ref()
}
