//! The query behind each export section, and how its rows become records.
//!
//! Text keys are compared as bytes (collation `"C"`), no matter what the database's own collation is.

use std::sync::Arc;

use metering_core::access::KeyHash;
use metering_core::charging::{Remembered, Window};
use metering_core::events::{Event, Webhook};
use metering_core::money::{LedgerEntry, Refill};
use metering_core::offers::AuthorizationRecord;
use metering_core::operators::Operator;
use metering_core::payments::{Challenge, PaymentRecord, Plan, Quote, RecipientRecord, UnreadableArrival};
use metering_core::prices::PriceVersion;
use metering_core::signups::{EmailLink, SignupSession};
use metering_core::transfer::{
    AccountRecord, DeliveryRecord, GasPlacesRecord, IdempotencyRecord, KeyRecord, LedgerRecord, Record, ScanMark,
    SecretRecord, Section, SolutionRecord, VolumeRecord, WalletLink,
};
use metering_core::usage::ACTIVITY_KEPT;
use metering_core::{Day, RequestId};
use metering_sql::{Record as _, audit};
use tokio_postgres::Row;

use crate::access::keys::{KEY_COLUMNS, KEY_WIDTH, key};
use crate::charging::holds::{HOLD_COLUMNS, HOLD_TABLES, hold};
use crate::charging::volumes::{VOLUME_COLUMNS, volume};
use crate::error::{Result, corrupt};
use crate::rows::{
    ACCOUNT_COLUMN_COUNT, ACCOUNT_COLUMNS, KEY_METER_COLUMNS, account, bytes, key_number, optional_key_meter,
    optional_timestamp, parsed, stored_result, timestamp, unsigned,
};
use crate::script::{dialect, read, record};

const _: () = assert!(ACTIVITY_KEPT == 1_000, "the SQL below has this number as a literal");

/// The query for a section's rows.
#[derive(Clone)]
pub(super) struct Source {
    columns: String,
    from: &'static str,
    condition: &'static str,
    /// The columns that the section is ordered by; together they are unique for each row.
    pub(super) keys: &'static [&'static str],
    /// How many of the leading keys an index covers.
    indexed: usize,
    pub(super) read: fn(&Row) -> Result<Record>,
}

impl Source {
    /// At most `$1` rows, after the keys in `$2` and the following parameters.
    pub(super) fn sql(&self, after: bool) -> String {
        let Self { columns, from, condition, keys, indexed, .. } = self;
        let values = |count: usize| (2..2 + count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ");
        let position = if after {
            let (prefix, all) = (keys[..*indexed].join(", "), keys.join(", "));
            // The first comparison is there so that the index can be used.
            format!("AND ({prefix}) >= ({}) AND ({all}) > ({})", values(*indexed), values(keys.len()))
        } else {
            String::new()
        };
        let keys = keys.join(", ");
        format!("SELECT {columns}, {keys} FROM {from} WHERE {condition} {position} ORDER BY {keys} LIMIT $1")
    }

    pub(super) fn of(section: Section) -> Self {
        match section {
            Section::Accounts | Section::Ledger | Section::Idempotency | Section::Holds | Section::Volumes => {
                books(section)
            }
            Section::Webhooks | Section::Events | Section::Deliveries => of_events(section),
            Section::Authorizations | Section::GasPlaces => of_offers(section),
            _ => rest(section),
        }
    }

    fn new(
        columns: impl Into<String>,
        from: &'static str,
        keys: &'static [&'static str],
        read: fn(&Row) -> Result<Record>,
    ) -> Self {
        Self { columns: columns.into(), from, condition: "TRUE", keys, indexed: 1, read }
    }
}

fn books(section: Section) -> Source {
    match section {
        Section::Ledger => Source::new(
            format!(
                "{}, CASE WHEN m.entries - ledger.entry < 1000 THEN m.entries - ledger.entry END",
                LedgerEntry::TABLE.column_list()
            ),
            "ledger JOIN meter m ON m.account = ledger.account",
            &["ledger.id"],
            ledger_record,
        ),
        Section::Idempotency => Source::new(
            "a.org_id, q.request_id, q.charged, q.balance, q.expires_at, q.fingerprint, q.tries, q.open_until, q.hold",
            "request_id q JOIN account a ON a.id = q.account",
            &["q.account", "q.request_id COLLATE \"C\""],
            idempotency_record,
        ),
        Section::Holds => {
            Source::new(HOLD_COLUMNS, HOLD_TABLES, &["h.id"], |row| Ok(Record::Hold(Box::new(hold(row, 0)?))))
        }
        Section::Volumes => Source::new(
            format!("a.org_id, {VOLUME_COLUMNS}"),
            "route_volume v JOIN account a ON a.id = v.account",
            &["v.account", "v.route_template COLLATE \"C\"", "v.http_method COLLATE \"C\""],
            volume_record,
        ),
        _ => Source::new(
            format!(
                "{ACCOUNT_COLUMNS}, m.minute, m.minute_count, m.day, m.day_count, \
                 least(m.entries, 1000) + (SELECT count(*) FROM ledger l \
                 WHERE l.account = a.id AND l.entry <= m.entries - 1000), a.refilled_on"
            ),
            "account a JOIN meter m ON m.account = a.id",
            &["a.id"],
            account_record,
        ),
    }
}

fn rest(section: Section) -> Source {
    match section {
        Section::Plans => {
            stored::<Plan>(&["chain_id", "id COLLATE \"C\""], |row| Ok(Record::Plan(Box::new(record(row)?))))
        }
        Section::Payments => stored::<PaymentRecord>(&["id"], |row| Ok(Record::Payment(Box::new(record(row)?)))),
        Section::Quotes => stored::<Quote>(&["nonce"], |row| Ok(Record::Quote(Box::new(record(row)?)))),
        Section::Links => stored::<WalletLink>(&["id"], |row| Ok(Record::Link(record(row)?))),
        Section::Challenges => stored::<Challenge>(&["nonce COLLATE \"C\""], |row| Ok(Record::Challenge(record(row)?))),
        Section::ScanMarks => stored::<ScanMark>(&["chain_id"], |row| Ok(Record::ScanMark(record(row)?))),
        Section::Recipients => {
            stored::<RecipientRecord>(&["chain_id", "recipient"], |row| Ok(Record::Recipient(record(row)?)))
        }
        Section::Unreadable => Source {
            indexed: 3,
            ..stored::<UnreadableArrival>(&["chain_id", "block", "tx_hash"], |row| Ok(Record::Unreadable(record(row)?)))
        },
        Section::Signups => stored::<SignupSession>(&["token"], |row| Ok(Record::Signup(record(row)?))),
        Section::EmailLinks => stored::<EmailLink>(&["token"], |row| Ok(Record::EmailLink(record(row)?))),
        Section::Solutions => Source::new("solution, expires_at", "used_solution", &["solution"], |row| {
            Ok(Record::Solution(SolutionRecord { solution: bytes(row, 0)?, expires_at: timestamp(row, 1)? }))
        }),
        Section::Refills => stored::<Refill>(&["id"], |row| Ok(Record::Refill(record(row)?))),
        Section::Operators => stored::<Operator>(&["name COLLATE \"C\""], |row| Ok(Record::Operator(record(row)?))),
        Section::Prices => stored::<(PriceVersion, Arc<str>)>(&["number"], |row| {
            let (version, catalogue) = record(row)?;
            Ok(Record::Price(Box::new(version), catalogue))
        }),
        Section::AuditLog => Source::new(audit::columns(), audit::TABLES, &["audit_entry.id"], |row| {
            Ok(Record::AuditEntry(Box::new(read(row, audit::read)?)))
        }),
        Section::Keys => Source {
            indexed: 2,
            ..Source::new(
                format!("a.org_id, {KEY_COLUMNS}, {KEY_METER_COLUMNS}"),
                "api_key k JOIN account a ON a.id = k.account \
                 LEFT JOIN key_meter c ON c.account = k.account AND c.key = k.number",
                &["k.account", "k.number"],
                key_record,
            )
        },
        _ => Source::new(
            "s.hash, a.org_id, s.key, s.created_at, s.expires_at, s.revoked_at, s.hash_kind",
            "key_secret s JOIN account a ON a.id = s.account",
            &["s.hash"],
            secret_record,
        ),
    }
}

fn of_events(section: Section) -> Source {
    match section {
        // The operator's own one comes first.
        Section::Webhooks => stored::<Webhook>(&["coalesce(webhook.account, 0)", "webhook.id"], |row| {
            Ok(Record::Webhook(Box::new(record(row)?)))
        }),
        Section::Events => stored::<Event>(&["number"], |row| Ok(Record::Event(Box::new(record(row)?)))),
        _ => stored::<DeliveryRecord>(&["id"], |row| Ok(Record::Delivery(record(row)?))),
    }
}

/// Without what [`parts`](metering_sql::offers::parts) adds.
fn of_offers(section: Section) -> Source {
    match section {
        Section::Authorizations => Source {
            indexed: 4,
            ..stored::<AuthorizationRecord>(&["chain_id", "token", "payer", "nonce"], |row| {
                Ok(Record::Authorization(Box::new(record(row)?)))
            })
        },
        _ => Source {
            indexed: 2,
            ..stored::<GasPlacesRecord>(&["chain_id", "wallet"], |row| Ok(Record::GasPlaces(record(row)?)))
        },
    }
}

/// A section whose rows are those of a table.
fn stored<R: metering_sql::Record>(keys: &'static [&'static str], read: fn(&Row) -> Result<Record>) -> Source {
    Source::new(dialect(&R::TABLE.column_list()), R::TABLE.name, keys, read)
}

fn account_record(row: &Row) -> Result<Record> {
    let window = |first: usize| {
        Ok::<_, crate::error::Failure>(Window { index: row.try_get(first)?, count: unsigned(row, first + 1)? })
    };
    let first = ACCOUNT_COLUMN_COUNT;
    let (minute, day, entries) = (window(first)?, window(first + 2)?, unsigned(row, first + 4)?);
    let refilled_on = row.try_get::<_, Option<i64>>(first + 5)?.map(Day::from_unix_days);
    Ok(Record::Account(Box::new(AccountRecord { account: account(row)?.1, minute, day, entries, refilled_on })))
}

fn ledger_record(row: &Row) -> Result<Record> {
    let newer = row.try_get::<_, Option<i64>>(9)?.map(number).transpose()?;
    Ok(Record::Ledger(LedgerRecord { entry: record(row)?, newer }))
}

fn number(newer: i64) -> Result<u32> {
    u32::try_from(newer).map_err(|_| corrupt(format_args!("{newer} newer entries are out of range")))
}

fn idempotency_record(row: &Row) -> Result<Record> {
    let text: &str = row.try_get(1)?;
    let request = RequestId::from_stored(text).map_err(|error| corrupt(format_args!("{text:?}: {error}")))?;
    let Remembered { result, expires_at } = stored_result(row, 2)?;
    Ok(Record::Idempotency(IdempotencyRecord { account: parsed(row, 0)?, request, result, expires_at }))
}

fn volume_record(row: &Row) -> Result<Record> {
    let (route, volume) = volume(row, 1)?;
    Ok(Record::Volume(VolumeRecord { account: parsed(row, 0)?, route, volume }))
}

fn key_record(row: &Row) -> Result<Record> {
    let meter = optional_key_meter(row, 1 + KEY_WIDTH)?;
    Ok(Record::Key(Box::new(KeyRecord { key: key(row, 1, &parsed(row, 0)?)?, meter })))
}

fn secret_record(row: &Row) -> Result<Record> {
    Ok(Record::Secret(SecretRecord {
        hash: KeyHash::from_bytes(bytes(row, 0)?),
        account: parsed(row, 1)?,
        key: key_number(row, 2)?,
        created_at: timestamp(row, 3)?,
        expires_at: optional_timestamp(row, 4)?,
        revoked_at: optional_timestamp(row, 5)?,
        hash_kind: parsed(row, 6)?,
    }))
}
