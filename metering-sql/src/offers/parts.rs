//! Adds to exported records what is in tables of their own.

use metering_core::transfer::Record;

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::offers::{places, rows};

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
