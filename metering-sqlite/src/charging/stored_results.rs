//! The stored results of requests with an id.

use metering_core::charging::{Delivery, Fingerprint, HoldId, Remembered, StoredResult};
use metering_core::{Credits, RequestId, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, store_error};
use crate::rows::{first, timestamp};

/// The columns that [`stored_result`] reads from `request_id`.
pub(crate) const STORED_RESULT_COLUMNS: &str = "charged, balance, expires_at, fingerprint, tries, open_until, hold";

/// The result for a request, unless it has expired.
pub(crate) fn remembered(
    connection: &Connection,
    account: i64,
    request: &RequestId,
    now: Timestamp,
) -> Result<Option<Remembered>> {
    let sql = format!(
        "SELECT {STORED_RESULT_COLUMNS} FROM request_id WHERE account = ?1 AND request_id = ?2 AND expires_at > ?3"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    first(&mut statement, params![account, request.as_str(), now.unix_millis()], |row| stored_result(row, 0).map(Ok))
}

/// Reads the remembered outcome of a request from the columns at `from` on.
pub(crate) fn stored_result(row: &Row<'_>, from: usize) -> rusqlite::Result<Remembered> {
    let amount = |index| row.get(from + index).map(Credits::from_atoms);
    let delivery = match row.get::<_, Option<[u8; 16]>>(from + 3)? {
        Some(fingerprint) => Some(Delivery {
            fingerprint: Fingerprint::from_bytes(fingerprint),
            tries: row.get(from + 4)?,
            open_until: row.get::<_, Option<i64>>(from + 5)?.map(Timestamp::from_unix_millis),
        }),
        None => None,
    };
    let hold = row.get::<_, Option<[u8; 16]>>(from + 6)?.map(HoldId::from_bytes);
    let result = StoredResult { charged: amount(0)?, balance: amount(1)?, delivery, hold };
    Ok(Remembered { result, expires_at: timestamp(row, from + 2)? })
}

/// Writes the results of a batch.
pub(crate) fn write(connection: &Connection, results: &[(i64, RequestId, Remembered)]) -> rusqlite::Result<()> {
    if results.is_empty() {
        return Ok(());
    }
    let mut remember = connection.prepare_cached(&format!(
        "INSERT OR REPLACE INTO request_id (account, request_id, {STORED_RESULT_COLUMNS}) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
    ))?;
    for (account, request, remembered) in results {
        let Remembered { result: StoredResult { charged, balance, delivery, hold }, expires_at } = remembered;
        remember.execute(params![
            account,
            request.as_str(),
            charged.atoms(),
            balance.atoms(),
            expires_at.unix_millis(),
            delivery.as_ref().map(|delivery| *delivery.fingerprint.as_bytes()),
            delivery.map(|delivery| delivery.tries),
            delivery.and_then(|delivery| delivery.open_until).map(Timestamp::unix_millis),
            hold.as_ref().map(HoldId::as_bytes),
        ])?;
    }
    Ok(())
}
