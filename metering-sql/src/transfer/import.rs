//! Writes records.

use metering_core::access::KeyRecord;
use metering_core::events::Webhook;
use metering_core::offers::AuthorizationRecord;
use metering_core::operators::AuditEntry;
use metering_core::usage::DailyTotal;

use crate::executor::Executor;
use crate::fault::Result;
use crate::transfer::record::{AccountRecord, DeliveryRecord, GasPlacesRecord};
use crate::transfer::rows::Rows;
use crate::transfer::section::{Record, Section};
use crate::{accounts, deliveries, keys, numbered, offers, record, usage, webhooks};

/// The records of a batch that are of one kind; it has no others.
macro_rules! of_kind {
    ($records:expr, $kind:ident, $record:ty) => {
        $records
            .iter()
            .filter_map(|record| match record {
                Record::$kind(record) => Some(<$record>::clone(record)),
                _ => None,
            })
            .collect::<Vec<$record>>()
    };
}

/// Writes records of one section, and returns how many. Every record must find the rows that it refers to: the sections
/// come in the order of [`Section::ALL`]. `lines` are the numbers of the usage lines of daily totals.
///
/// Nothing is written of sections that each backend writes in its own way: ledger entries, recent usage and holds.
pub async fn write(db: &mut dyn Executor, section: Section, records: &[Record], lines: &[i64]) -> Result<u64> {
    match section {
        Section::Accounts => {
            let rows = accounts::insert_rows(db, &of_kind!(records, Account, AccountRecord)).await?;
            Ok(rows.len() as u64)
        }
        Section::Keys => keys::insert(db, &of_kind!(records, Key, KeyRecord)).await,
        Section::Usage => usage::insert(db, &of_kind!(records, Usage, DailyTotal), lines).await,
        Section::Authorizations => {
            offers::parts::insert(db, &of_kind!(records, Authorization, AuthorizationRecord)).await
        }
        Section::GasPlaces => offers::places::insert(db, &of_kind!(records, GasPlaces, GasPlacesRecord)).await,
        Section::Webhooks => webhooks::insert(db, &of_kind!(records, Webhook, Webhook)).await,
        Section::Deliveries => deliveries::insert(db, &of_kind!(records, Delivery, DeliveryRecord)).await,
        Section::AuditLog => audit_log(db, of_kind!(records, AuditEntry, AuditEntry)).await,
        Section::Ledger | Section::Activity | Section::Holds => Ok(0),
        Section::Payments | Section::Links => rows(db, section, records, true).await,
        section => rows(db, section, records, false).await,
    }
}

/// Writes records that are rows of a table, which are numbered in the order of writing or not.
async fn rows(db: &mut dyn Executor, section: Section, records: &[Record], are_numbered: bool) -> Result<u64> {
    let Some(Rows { table, values, .. }) = Rows::of(section) else { return Ok(0) };
    let rows = records.iter().filter_map(values).collect::<Result<Vec<_>>>()?;
    if are_numbered { numbered::insert_rows(db, &table, rows).await } else { db.execute(&table.insert(), &rows).await }
}

/// Entries keep their ids.
async fn audit_log(db: &mut dyn Executor, entries: Vec<AuditEntry>) -> Result<u64> {
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    for AuditEntry { id, entry, outcome } in entries {
        begun.push((id, entry));
        ended.extend(outcome.map(|outcome| (id, outcome)));
    }
    let written = record::insert(db, &begun).await?;
    record::insert(db, &ended).await?;
    Ok(written)
}
