//! The searches of operators, each by an index.

use metering_core::Timestamp;
use metering_core::access::{Key, KeyId};
use metering_core::backend::{one_more_than, page, unknown_cursor};
use metering_core::chains::TxHash;
use metering_core::events::Delivery;
use metering_core::payments::{ConsecutiveNumber, PaymentRecord, ReceiptNumber};
use metering_core::store::{Cursor, Page};

use crate::deliveries;
use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{find, list};
use crate::values;

/// The key with this id, of any account.
pub async fn key(db: &mut dyn Executor, id: &KeyId) -> Result<Option<Key>> {
    find(db, "WHERE api_key.{key_id} = ?1", &values![id]).await
}

/// What follows `FROM payment` for the payments with the hash `?1`. The index of the ledger starts with the hash, that
/// of the payments with the chain.
pub const BY_HASH: &str = "WHERE payment.tx_hash = ?1 \
     AND payment.chain_id IN (SELECT l.tx_chain_id FROM ledger l WHERE l.tx_hash = ?1) ORDER BY payment.id";

/// The payments with this hash, in the order recorded.
pub async fn payments_by_hash(db: &mut dyn Executor, hash: &TxHash) -> Result<Vec<PaymentRecord>> {
    list(db, BY_HASH, &values![hash]).await
}

/// The payments whose receipts have this number, at most twenty.
pub async fn payments_by_receipt(db: &mut dyn Executor, number: &ReceiptNumber) -> Result<Vec<PaymentRecord>> {
    let hashes = number.hashes();
    let rest = "WHERE chain_id = ?1 AND tx_hash >= ?2 AND tx_hash <= ?3 ORDER BY tx_hash LIMIT 20";
    list(db, rest, &values![number.chain_id(), hashes.start(), hashes.end()]).await
}

/// The payment whose receipt, or a credit note of it, has this number.
pub async fn payment_by_number(db: &mut dyn Executor, number: &ConsecutiveNumber) -> Result<Option<PaymentRecord>> {
    let rest = "WHERE (chain_id, tx_hash) = (SELECT r.chain_id, r.tx_hash FROM issued_receipt r \
                WHERE r.series = ?1 AND r.sequence = ?2)";
    find(db, rest, &values![number.series, number.sequence]).await
}

/// What follows `WHERE` for the heads of lines whose last attempt failed, after the one that is tried since `?2` and has the
/// number `?3`, at most `?1`.
pub const FAILING: &str = "delivery.is_head AND delivery.attempts > 0 AND delivery.last_error IS NOT NULL \
     AND (delivery.since, delivery.id) > (?2, ?3) ORDER BY delivery.since, delivery.id LIMIT ?1";

/// The first deliveries of their lines whose last attempt failed, after a cursor, the one that is tried longest first.
pub async fn failing_deliveries(db: &mut dyn Executor, after: Option<&Cursor>, limit: u32) -> Result<Page<Delivery>> {
    let (since, id) = match after {
        None => (i64::MIN, i64::MIN),
        Some(after) => position(after).ok_or_else(unknown_cursor)?,
    };
    let values = values![one_more_than(limit), Timestamp::from_unix_millis(since), id];
    let rows = db.query(&deliveries::select(FAILING), &values).await?;
    let keyed = |(delivery, _): (Delivery, _)| ((delivery.progress.since.unix_millis(), delivery.id.get()), delivery);
    let found = rows.iter().map(|row| deliveries::delivery(row).map(keyed)).collect::<Result<Vec<_>>>()?;
    Ok(page(found, limit, |(since, id)| Cursor::new(format!("{since}.{id}"))))
}

/// The sort order of failing deliveries.
fn position(cursor: &Cursor) -> Option<(i64, i64)> {
    let (since, id) = cursor.as_str().split_once('.')?;
    Some((since.parse().ok()?, id.parse().ok()?))
}
