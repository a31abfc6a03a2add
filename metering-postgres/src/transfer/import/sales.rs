//! Imports plans and everything about payments.

use metering_core::payments::{PaymentRecord, Plan, Quote, RecipientRecord, UnreadableArrival};
use metering_core::transfer::{Record, ScanMark, WalletLink};

use super::books::of_kind;
use crate::error::Result;
use crate::script::Statements;
use crate::transactions::serialized::SerializedWrite;

/// Inserts records that are stored as one row each.
pub(super) async fn insert<R: metering_sql::Record>(write: &SerializedWrite<'_>, records: &[R]) -> Result<u64> {
    Ok(metering_sql::insert(&mut Statements(write.client()), records).await?)
}

/// Like [`insert`], for records whose rows are numbered.
async fn insert_numbered<R: metering_sql::Record>(write: &SerializedWrite<'_>, records: &[R]) -> Result<u64> {
    Ok(metering_sql::numbered::insert(&mut Statements(write.client()), records).await?)
}

pub(super) async fn plans(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<Plan> = of_kind!(records, Plan).into_iter().map(|plan| Plan::clone(plan)).collect();
    insert(write, &records).await
}

pub(super) async fn payments(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<PaymentRecord> =
        of_kind!(records, Payment).into_iter().map(|record| PaymentRecord::clone(record)).collect();
    insert_numbered(write, &records).await
}

/// The schema checks that every quote that is not open has found its account.
pub(super) async fn quotes(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<Quote> = of_kind!(records, Quote).into_iter().map(|quote| Quote::clone(quote)).collect();
    insert(write, &records).await
}

pub(super) async fn links(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<WalletLink> = of_kind!(records, Link).into_iter().cloned().collect();
    insert_numbered(write, &records).await
}

pub(super) async fn scan_marks(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<ScanMark> = of_kind!(records, ScanMark).into_iter().cloned().collect();
    insert(write, &records).await
}

pub(super) async fn recipients(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<RecipientRecord> = of_kind!(records, Recipient).into_iter().cloned().collect();
    insert(write, &records).await
}

pub(super) async fn unreadable(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<UnreadableArrival> = of_kind!(records, Unreadable).into_iter().cloned().collect();
    insert(write, &records).await
}
