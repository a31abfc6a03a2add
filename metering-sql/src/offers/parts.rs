//! Moves the parts of records that are in separate tables.

use metering_core::offers::AuthorizationRecord;

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::numbered;
use crate::offers::{places, rows, submissions};
use crate::transfer::Record;

/// Completes a page of a section, whose records are in the section's order.
pub async fn complete(db: &mut dyn Executor, mut records: Vec<Record>) -> Result<Vec<Record>> {
    if let Some(Record::Authorization(first)) = records.first() {
        let mut whole = rows::page(db, &first.signed.id(), records.len()).await?;
        for record in &mut records {
            let Record::Authorization(record) = record else { continue };
            let missing = || corrupt("payment_authorization: a row is not in the index of its ids");
            **record = whole.remove(&record.signed.id()).ok_or_else(missing)?;
        }
    }
    for record in &mut records {
        if let Record::GasPlaces(of_wallet) = record {
            of_wallet.given_back = places::given_back(db, of_wallet.chain_id, &of_wallet.wallet).await?;
        }
    }
    Ok(records)
}

/// Inserts authorizations with their transactions, and returns how many. A claim ended when its authorization was
/// received, so a pending one is free, and the oldest is claimed first.
pub(crate) async fn insert(db: &mut dyn Executor, records: &[AuthorizationRecord]) -> Result<u64> {
    let claimed_until = |record: &AuthorizationRecord| (record.clone(), record.received_at);
    let written = numbered::insert(db, &records.iter().map(claimed_until).collect::<Vec<_>>()).await?;
    let signed = records.iter().flat_map(|record| {
        let id = record.signed.id();
        (1_i64..).zip(&record.submissions).map(move |(number, submission)| (id, number, submission))
    });
    submissions::insert(db, &signed.collect::<Vec<_>>()).await?;
    Ok(written)
}
