//! Reversals of payments that processors took.

use metering_core::chains::TxHash;
use metering_core::payments::{ProcessorRef, ProcessorReversal};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{self, Record, table};
use crate::row::Reader;
use crate::table::Table;
use crate::value::Value;
use crate::values;

impl Record for ProcessorReversal {
    const TABLE: Table = table!("payment_reversal" by ["processor", "reversal_id"] {
        Own(processor), Own(reversal_id), Own(tx_hash), Own(amount), Own(reason), Own(reversed_at), Own(restored_at)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let Self { reference, payment, amount, reason, reversed_at, restored_at } = self;
        Ok(values![reference.processor(), reference.id(), payment, amount, reason, reversed_at, restored_at])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (processor, id): (String, String) = (row.next()?, row.next()?);
        let reference = ProcessorRef::new(&processor, &id).map_err(|wrong| row.corrupt(wrong))?;
        let (payment, amount, reason) = (row.next()?, row.next()?, row.next()?);
        let (reversed_at, restored_at) = (row.next()?, row.next()?);
        Ok(Self { reference, payment, amount, reason, reversed_at, restored_at })
    }
}

/// The reversals of the payment with this hash, by time, then id.
pub async fn of_payment(db: &mut dyn Executor, payment: &TxHash) -> Result<Vec<ProcessorReversal>> {
    let rest = "WHERE tx_hash = ?1 ORDER BY reversed_at, reversal_id {bytes}";
    record::list(db, rest, &values![payment]).await
}
