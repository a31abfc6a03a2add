//! The parts of records that are in tables of their own.

use metering_core::transfer::Record;
use rusqlite::Connection;

use crate::error::{Result, corrupt};
use crate::offers::{places, rows};

/// Reads the rest of a record whose row was read.
pub(super) fn complete(connection: &Connection, record: Record) -> Result<Record> {
    match record {
        Record::Authorization(record) => {
            let found = rows::by_id(connection, &record.signed.id())?;
            let (_, whole) =
                found.ok_or_else(|| corrupt("payment_authorization: a row is not in the index of its ids"))?;
            Ok(Record::Authorization(Box::new(whole)))
        }
        Record::GasPlaces(mut record) => {
            record.given_back = places::given_back(connection, record.chain_id, record.wallet)?;
            Ok(Record::GasPlaces(record))
        }
        whole => Ok(whole),
    }
}
