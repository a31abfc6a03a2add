//! Imports operators, price versions and the audit log.

use std::sync::Arc;

use metering_core::operators::{AuditEntry, AuditId, AuditOutcome, NewAuditEntry, Operator};
use metering_core::prices::PriceVersion;
use metering_core::transfer::Record;

use super::books::of_kind;
use super::sales::insert;
use crate::error::Result;
use crate::transactions::serialized::SerializedWrite;

pub(super) async fn operators(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<Operator> = of_kind!(records, Operator).into_iter().cloned().collect();
    insert(write, &records).await
}

pub(super) async fn prices(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let prices = records.iter().filter_map(|record| match record {
        Record::Price(version, catalogue) => Some((PriceVersion::clone(version), Arc::clone(catalogue))),
        _ => None,
    });
    insert(write, &prices.collect::<Vec<_>>()).await
}

/// Entries keep their ids.
pub(super) async fn audit_log(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&AuditEntry> = of_kind!(records, AuditEntry).into_iter().map(|entry| &**entry).collect();
    let entries: Vec<(AuditId, NewAuditEntry)> =
        records.iter().map(|record| (record.id, record.entry.clone())).collect();
    let outcomes: Vec<(AuditId, AuditOutcome)> =
        records.iter().filter_map(|record| Some((record.id, record.outcome.clone()?))).collect();
    let written = insert(write, &entries).await?;
    insert(write, &outcomes).await?;
    Ok(written)
}
