//! The query behind each export section, and how its rows become records.

use std::sync::Arc;

use metering_core::access::{KeyHash, KeyNumber};
use metering_core::charging::{Remembered, Window};
use metering_core::events::{Event, Webhook};
use metering_core::money::{LedgerEntry, Refill};
use metering_core::offers::AuthorizationRecord;
use metering_core::operators::Operator;
use metering_core::payments::{Challenge, PaymentRecord, Plan, Quote, RecipientRecord, UnreadableArrival};
use metering_core::prices::PriceVersion;
use metering_core::signups::{EmailLink, SignupSession};
use metering_core::transfer::{
    AccountRecord, ActivityRecord, DeliveryRecord, GasPlacesRecord, IdempotencyRecord, KeyRecord, LedgerRecord, Record,
    ScanMark, SecretRecord, Section, SolutionRecord, VolumeRecord, WalletLink,
};
use metering_core::usage::DailyTotal;
use metering_core::{ClientSource, Credits, Day, RequestId, UsageLine};
use metering_sql::{Record as _, audit};
use rusqlite::Row;

use crate::access::keys::{
    KEY_COLUMN_COUNT, KEY_COLUMNS, METER_COLUMN_COUNT, METER_COLUMNS, key, meter, optional_time,
};
use crate::charging::holds;
use crate::charging::stored_results::{STORED_RESULT_COLUMNS, stored_result};
use crate::charging::volumes;
use crate::error::{Result, corrupt};
use crate::rows::{ACCOUNT_COLUMN_COUNT, ACCOUNT_COLUMNS, account, parse, timestamp};
use crate::script::{dialect, read, record};
use crate::usage::kind;

type Read<T> = rusqlite::Result<Result<T>>;

/// The query for a section's rows.
pub(super) struct Source {
    columns: String,
    from: &'static str,
    condition: &'static str,
    /// The columns that the section is ordered by; together they are unique for each row.
    pub(super) keys: &'static [&'static str],
    /// How many of the leading keys an index covers.
    indexed: usize,
    pub(super) read: fn(&Row<'_>) -> Read<Record>,
}

impl Source {
    /// At most `?1` rows, after the keys in `?2` and the following parameters.
    pub(super) fn sql(&self, after: bool) -> String {
        let Self { columns, from, condition, keys, indexed, .. } = self;
        let tuple = |keys: &[&str]| keys.join(", ");
        let values = |count: usize| (2..2 + count).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ");
        let position = if after {
            let (prefix, all) = (tuple(&keys[..*indexed]), tuple(keys));
            // The first comparison lets SQLite use the index; the second cannot, since it has keys of other tables.
            format!("AND ({prefix}) >= ({}) AND ({all}) > ({})", values(*indexed), values(keys.len()))
        } else {
            String::new()
        };
        let keys = tuple(keys);
        format!("SELECT {columns}, {keys} FROM {from} WHERE {condition} {position} ORDER BY {keys} LIMIT ?1")
    }

    pub(super) fn of(section: Section) -> Self {
        match section {
            Section::Accounts
            | Section::Ledger
            | Section::Usage
            | Section::Activity
            | Section::Idempotency
            | Section::Volumes => books(section),
            Section::Webhooks | Section::Events | Section::Deliveries => sent(section),
            Section::Authorizations | Section::GasPlaces => offered(section),
            _ => rest(section),
        }
    }

    fn new(
        columns: impl Into<String>,
        from: &'static str,
        keys: &'static [&'static str],
        read: fn(&Row<'_>) -> Read<Record>,
    ) -> Self {
        Self { columns: columns.into(), from, condition: "1", keys, indexed: 1, read }
    }
}

/// `CROSS JOIN` makes SQLite join in the order written. The first table is the one that has the section's order.
fn books(section: Section) -> Source {
    match section {
        Section::Ledger => Source::new(
            format!("{}, r.newer", LedgerEntry::TABLE.column_list()),
            "ledger LEFT JOIN temp.recent r ON r.id = ledger.id",
            &["ledger.id"],
            ledger_record,
        ),
        Section::Usage => Source {
            indexed: 2,
            ..Source::new(
                "a.org_id, n.route_template, n.http_method, n.source, u.day, u.key, u.calls, u.amount",
                "usage_daily u CROSS JOIN account a ON a.id = u.account CROSS JOIN usage_line n ON n.id = u.line",
                &["u.day", "u.account", "n.route_template", "n.http_method", "n.source", "u.key"],
                usage_record,
            )
        },
        Section::Activity => Source {
            condition: "r.is_usage = 1",
            indexed: 2,
            ..Source::new(
                "a.org_id, n.route_template, n.http_method, n.source, r.newer, x.amount, x.kind, x.calls, \
                 x.request_path, x.created_at, x.key",
                "temp.recent r CROSS JOIN temp.unpacked x ON x.id = r.id CROSS JOIN account a ON a.id = r.account \
                 CROSS JOIN usage_line n ON n.id = x.line",
                &["r.account", "r.id"],
                activity_record,
            )
        },
        Section::Idempotency => Source {
            indexed: 2,
            ..Source::new(
                format!("a.org_id, q.request_id, {STORED_RESULT_COLUMNS}"),
                "request_id q CROSS JOIN account a ON a.id = q.account",
                &["q.account", "q.request_id"],
                idempotency_record,
            )
        },
        Section::Volumes => Source {
            indexed: 3,
            ..Source::new(
                format!("a.org_id, {}", volumes::COLUMNS),
                "route_volume v CROSS JOIN account a ON a.id = v.account",
                &["v.account", "v.route_template", "v.http_method"],
                volume_record,
            )
        },
        _ => Source::new(
            format!(
                "{ACCOUNT_COLUMNS}, m.minute, m.minute_count, m.day, m.day_count, a.refilled_on, \
                 (SELECT count(*) FROM ledger l WHERE l.account = a.id) \
                 + (SELECT count(*) FROM temp.recent r WHERE r.account = a.id AND r.is_usage = 1)"
            ),
            "account a CROSS JOIN meter m ON m.account = a.id",
            &["a.id"],
            account_record,
        ),
    }
}

fn sent(section: Section) -> Source {
    match section {
        Section::Webhooks => Source {
            indexed: 2,
            ..stored::<Webhook>(&["coalesce(webhook.account, 0)", "webhook.id"], |row| {
                Ok(record(row)?.map(|webhook| Record::Webhook(Box::new(webhook))))
            })
        },
        Section::Events => {
            stored::<Event>(&["number"], |row| Ok(record(row)?.map(|event| Record::Event(Box::new(event)))))
        }
        _ => stored::<DeliveryRecord>(&["id"], |row| Ok(record(row)?.map(Record::Delivery))),
    }
}

/// Without what [`parts`](metering_sql::offers::parts) adds.
fn offered(section: Section) -> Source {
    match section {
        Section::Authorizations => Source {
            indexed: 4,
            ..stored::<AuthorizationRecord>(&["chain_id", "token", "payer", "nonce"], |row| {
                Ok(record::<AuthorizationRecord>(row)?.map(|record| Record::Authorization(Box::new(record))))
            })
        },
        _ => Source {
            indexed: 2,
            ..stored::<GasPlacesRecord>(&["chain_id", "wallet"], |row| Ok(record(row)?.map(Record::GasPlaces)))
        },
    }
}

fn rest(section: Section) -> Source {
    match section {
        Section::Plans => {
            stored::<Plan>(&["chain_id", "id"], |row| Ok(record::<Plan>(row)?.map(|plan| Record::Plan(Box::new(plan)))))
        }
        Section::Payments => stored::<PaymentRecord>(&["id"], |row| {
            Ok(record::<PaymentRecord>(row)?.map(|record| Record::Payment(Box::new(record))))
        }),
        Section::Quotes => {
            stored::<Quote>(&["nonce"], |row| Ok(record::<Quote>(row)?.map(|quote| Record::Quote(Box::new(quote)))))
        }
        Section::Links => stored::<WalletLink>(&["id"], |row| Ok(record(row)?.map(Record::Link))),
        Section::Challenges => stored::<Challenge>(&["nonce"], |row| Ok(record(row)?.map(Record::Challenge))),
        Section::ScanMarks => stored::<ScanMark>(&["chain_id"], |row| Ok(record(row)?.map(Record::ScanMark))),
        Section::Recipients => {
            stored::<RecipientRecord>(&["chain_id", "recipient"], |row| Ok(record(row)?.map(Record::Recipient)))
        }
        Section::Unreadable => Source {
            indexed: 3,
            ..stored::<UnreadableArrival>(&["chain_id", "block", "tx_hash"], |row| {
                Ok(record(row)?.map(Record::Unreadable))
            })
        },
        Section::Signups => stored::<SignupSession>(&["token"], |row| Ok(record(row)?.map(Record::Signup))),
        Section::EmailLinks => stored::<EmailLink>(&["token"], |row| Ok(record(row)?.map(Record::EmailLink))),
        Section::Solutions => Source::new("solution, expires_at", "used_solution", &["solution"], solution_record),
        Section::Holds => Source::new(holds::COLUMNS, holds::TABLES, &["h.id"], |row| {
            Ok(holds::hold(row)?.map(|(_, hold)| Record::Hold(Box::new(hold))))
        }),
        Section::Refills => stored::<Refill>(&["id"], |row| Ok(record(row)?.map(Record::Refill))),
        Section::Operators => stored::<Operator>(&["name"], |row| Ok(record(row)?.map(Record::Operator))),
        Section::Prices => stored::<(PriceVersion, Arc<str>)>(&["number"], |row| {
            Ok(record(row)?.map(|(version, catalogue)| Record::Price(Box::new(version), catalogue)))
        }),
        Section::AuditLog => Source::new(audit::columns(), audit::TABLES, &["audit_entry.id"], |row| {
            let entry = read(row, audit::WIDTH, audit::read);
            Ok(entry.map(|entry| Record::AuditEntry(Box::new(entry))))
        }),
        Section::Keys => Source {
            indexed: 2,
            ..Source::new(
                format!("{KEY_COLUMNS}, {METER_COLUMNS}, a.org_id"),
                "api_key k CROSS JOIN account a ON a.id = k.account \
                 LEFT JOIN key_meter m ON m.account = k.account AND m.key = k.number",
                &["k.account", "k.number"],
                key_record,
            )
        },
        _ => Source::new(
            "s.hash, a.org_id, s.key, s.created_at, s.expires_at, s.revoked_at, s.hash_kind",
            "key_secret s CROSS JOIN account a ON a.id = s.account",
            &["s.hash"],
            secret_record,
        ),
    }
}

/// A section whose rows are those of a table.
fn stored<R: metering_sql::Record>(keys: &'static [&'static str], read: fn(&Row<'_>) -> Read<Record>) -> Source {
    Source::new(dialect(&R::TABLE.column_list()), R::TABLE.name, keys, read)
}

fn account_record(row: &Row<'_>) -> Read<Record> {
    let window = |first| Ok::<_, rusqlite::Error>(Window { index: row.get(first)?, count: row.get(first + 1)? });
    let first = ACCOUNT_COLUMN_COUNT;
    let (minute, day) = (window(first)?, window(first + 2)?);
    let refilled_on = row.get::<_, Option<i64>>(first + 4)?.map(Day::from_unix_days);
    let entries = row.get::<_, i64>(first + 5)?.unsigned_abs();
    let record = |account| AccountRecord { account, minute, day, entries, refilled_on };
    Ok(account(row)?.map(|(_, account)| Record::Account(Box::new(record(account)))))
}

fn ledger_record(row: &Row<'_>) -> Read<Record> {
    let newer = row.get(9)?;
    Ok(record(row)?.map(|entry| Record::Ledger(LedgerRecord { entry, newer })))
}

/// Reads a usage line from the three columns after the account's id.
fn line(row: &Row<'_>) -> rusqlite::Result<UsageLine> {
    let text = |index| row.get::<_, String>(index);
    let source = ClientSource::from_name(&text(3)?);
    Ok(UsageLine { route_template: text(1)?.into(), http_method: text(2)?.into(), source })
}

fn usage_record(row: &Row<'_>) -> Read<Record> {
    let (org_id, line): (String, _) = (row.get(0)?, line(row)?);
    let (day, key) = (Day::from_unix_days(row.get(4)?), KeyNumber::new(row.get(5)?));
    let (calls, credits_used) = (row.get::<_, i64>(6)?.unsigned_abs(), Credits::from_atoms(row.get(7)?));
    Ok(parse(&org_id).map(|account| Record::Usage(DailyTotal { account, day, line, key, calls, credits_used })))
}

fn activity_record(row: &Row<'_>) -> Read<Record> {
    let (org_id, line): (String, _) = (row.get(0)?, line(row)?);
    let (newer, amount, kind) = (row.get(4)?, Credits::from_atoms(row.get(5)?), row.get::<_, u8>(6)?);
    let calls = row.get::<_, i64>(7)?.unsigned_abs();
    let request_path = row.get::<_, Option<String>>(8)?.map(Into::into);
    let (created_at, key) = (timestamp(row, 9)?, KeyNumber::new(row.get(10)?));
    let record = || {
        let kind = kind::of_number(kind).ok_or_else(|| corrupt(format_args!("{kind} is no kind of usage")))?;
        let account = parse(&org_id)?;
        Ok(ActivityRecord { account, newer, line, key, amount, kind, calls, request_path, created_at })
    };
    Ok(record().map(Record::Activity))
}

fn idempotency_record(row: &Row<'_>) -> Read<Record> {
    let (org_id, request): (String, String) = (row.get(0)?, row.get(1)?);
    let Remembered { result, expires_at } = stored_result(row, 2)?;
    let read = || {
        let request =
            RequestId::from_stored(&request).map_err(|error| corrupt(format_args!("{request:?}: {error}")))?;
        Ok(Record::Idempotency(IdempotencyRecord { account: parse(&org_id)?, request, result, expires_at }))
    };
    Ok(read())
}

fn volume_record(row: &Row<'_>) -> Read<Record> {
    let (org_id, counted): (String, _) = (row.get(0)?, volumes::of_row(row, 1)?);
    let record = |(route, volume)| Ok(Record::Volume(VolumeRecord { account: parse(&org_id)?, route, volume }));
    Ok(counted.and_then(record))
}

fn solution_record(row: &Row<'_>) -> Read<Record> {
    Ok(Ok(Record::Solution(SolutionRecord { solution: row.get(0)?, expires_at: timestamp(row, 1)? })))
}

fn key_record(row: &Row<'_>) -> Read<Record> {
    let meter = meter(row, KEY_COLUMN_COUNT)?;
    let account = match parse(&row.get::<_, String>(KEY_COLUMN_COUNT + METER_COLUMN_COUNT)?) {
        Ok(account) => account,
        Err(error) => return Ok(Err(error)),
    };
    let key = key(row, 0, &account)?;
    Ok(key.and_then(|key| Ok(Record::Key(Box::new(KeyRecord { key, meter: meter? })))))
}

fn secret_record(row: &Row<'_>) -> Read<Record> {
    let (hash, org_id): (_, String) = (KeyHash::from_bytes(row.get(0)?), row.get(1)?);
    let (key, created_at) = (KeyNumber::new(row.get(2)?), timestamp(row, 3)?);
    let (expires_at, revoked_at) = (optional_time(row, 4)?, optional_time(row, 5)?);
    let kind: String = row.get(6)?;
    let read = || {
        let (account, hash_kind) = (parse(&org_id)?, parse(&kind)?);
        Ok(Record::Secret(SecretRecord { hash, hash_kind, account, key, created_at, expires_at, revoked_at }))
    };
    Ok(read())
}
