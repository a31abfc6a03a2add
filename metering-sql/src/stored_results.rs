//! The stored results of requests with an id. Commits read and write them.

use metering_core::charging::{Delivery, StoredResult};

use crate::fault::Result;
use crate::record::{Record, table};
use crate::row::Reader;
use crate::table::Table;
use crate::transfer::IdempotencyRecord;
use crate::value::Value;
use crate::values;

impl Record for IdempotencyRecord {
    const TABLE: Table = table!("request_id" by ["account", "request_id"] {
        Account(account), Own(request_id), Own(charged), Own(balance), Own(expires_at), Own(fingerprint), Own(tries),
        Own(open_until), Own(hold)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let Self { account, request, result: StoredResult { charged, balance, delivery, hold }, expires_at } = self;
        let mut values = values![account, request, charged, balance, expires_at];
        values.extend(values![
            delivery.map(|delivery| delivery.fingerprint),
            delivery.map(|delivery| delivery.tries),
            delivery.and_then(|delivery| delivery.open_until),
            hold
        ]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (account, request, charged, balance) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let (expires_at, fingerprint) = (row.next()?, row.next()?);
        // The schema ensures that both are set or neither is.
        let (tries, open_until): (Option<_>, _) = (row.next()?, row.next()?);
        let delivery =
            Option::zip(fingerprint, tries).map(|(fingerprint, tries)| Delivery { fingerprint, tries, open_until });
        let result = StoredResult { charged, balance, delivery, hold: row.next()? };
        Ok(Self { account, request, result, expires_at })
    }
}
