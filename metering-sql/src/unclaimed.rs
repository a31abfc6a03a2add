//! Payments that arrived and that no account has.

use std::ops::RangeInclusive;

use metering_core::Timestamp;
use metering_core::backend::{one_more_than, page, unknown_cursor};
use metering_core::chains::{Address, Block, TokenUnits, TxHash, TxRef};
use metering_core::payments::{Arrival, Payment, PaymentFault, PaymentTarget, UnclaimedPayment};
use metering_core::store::{Cursor, Page};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{Record, list, table};
use crate::row::{Reader, only};
use crate::table::Table;
use crate::value::Value;
use crate::{payments, values};

impl Record for UnclaimedPayment {
    const TABLE: Table = table!("unclaimed_payment" by ["chain_id", "tx_hash", "token", "recipient", "block"] {
        Own(chain_id), Own(tx_hash), Own(token), Own(recipient), Own(block), Own(block_hash), Own(mined_at), Own(payer),
        Own(amount), Own(transfers), Own(seen_at)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let Self { arrival: Arrival { tx, target, block, payment }, seen_at } = self;
        let (payer, amount, transfers) = match payment {
            Ok(payment) => (Some(payment.payer), Some(payment.amount), None),
            Err(PaymentFault::SeveralTransfers { count }) => {
                (None, None, Some(u32::try_from(*count).unwrap_or(u32::MAX)))
            }
            // Call data: other transactions do not count as arrivals.
            Err(_) => (None, None, None),
        };
        let mut values = values![tx.chain_id, tx.hash, target.token, target.recipient, block.number, block.hash];
        values.extend(values![block.time, payer, amount, transfers, seen_at]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let tx = TxRef { chain_id: row.next()?, hash: row.next()? };
        let target = PaymentTarget { chain_id: tx.chain_id, token: row.next()?, recipient: row.next()? };
        let block = Block { number: row.next()?, hash: row.next()?, time: row.next()? };
        let paid: (Option<Address>, Option<TokenUnits>, Option<u32>) = (row.next()?, row.next()?, row.next()?);
        let payment = match paid {
            (Some(payer), Some(amount), _) => Ok(Payment {
                tx,
                payer,
                recipient: target.recipient,
                token: target.token,
                amount,
                block_number: block.number,
                block_hash: Some(block.hash),
                mined_at: block.time,
            }),
            (_, _, Some(count)) => {
                Err(PaymentFault::SeveralTransfers { count: usize::try_from(count).unwrap_or(usize::MAX) })
            }
            _ => Err(PaymentFault::HasInput),
        };
        Ok(Self { arrival: Arrival { tx, target, block, payment }, seen_at: row.next()? })
    }
}

/// Stores a payment, unless it was used. If it is stored already, only its block is updated, as it may have been replaced.
pub async fn put(db: &mut dyn Executor, payment: &UnclaimedPayment) -> Result<()> {
    if payments::by_tx(db, &payment.arrival.tx).await?.is_some() {
        return Ok(());
    }
    let conflict = "ON CONFLICT (chain_id, tx_hash, token, recipient, block) DO UPDATE \
         SET block_hash = excluded.block_hash, mined_at = excluded.mined_at";
    let sql = format!("{} {conflict}", UnclaimedPayment::TABLE.insert());
    db.execute(&sql, &[payment.values()?]).await.map(drop)
}

/// The newest payments after a cursor, at most `limit`, and how many there are in all.
pub async fn newest(
    db: &mut dyn Executor,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<(Page<UnclaimedPayment>, u64)> {
    let rows = db.query("SELECT count(*) FROM unclaimed_payment", &[]).await?;
    let (mut rest, mut values) = (String::new(), values![one_more_than(limit)]);
    if let Some(after) = after {
        rest = "WHERE (mined_at, block, chain_id, tx_hash, token, recipient) < (?2, ?3, ?4, ?5, ?6, ?7) ".to_owned();
        values.extend(position(after).ok_or_else(unknown_cursor)?);
    }
    rest.push_str(
        "ORDER BY mined_at DESC, block DESC, chain_id DESC, tx_hash DESC, token DESC, recipient DESC LIMIT ?1",
    );
    let found: Vec<UnclaimedPayment> = list(db, &rest, &values).await?;
    let found = found.into_iter().map(|payment| (cursor(&payment), payment)).collect();
    Ok((page(found, limit, Cursor::clone), only(&rows)?.get(0)?))
}

/// The sort order of payments.
fn cursor(UnclaimedPayment { arrival: Arrival { tx, target, block, .. }, .. }: &UnclaimedPayment) -> Cursor {
    let (mined_at, PaymentTarget { token, recipient, .. }) = (block.time.unix_millis(), target);
    Cursor::new(format!("{mined_at}.{}.{}.{}.{token}.{recipient}", block.number, tx.chain_id, tx.hash))
}

fn position(cursor: &Cursor) -> Option<Vec<Value>> {
    let parts: Vec<&str> = cursor.as_str().split('.').collect();
    let [mined_at, block, chain, hash, token, recipient] = parts[..] else { return None };
    let mined_at = Timestamp::from_unix_millis(mined_at.parse().ok()?);
    let (block, chain): (u64, u64) = (block.parse().ok()?, chain.parse().ok()?);
    let (hash, token, recipient): (TxHash, Address, Address) =
        (hash.parse().ok()?, token.parse().ok()?, recipient.parse().ok()?);
    Some(values![mined_at, block, chain, hash, token, recipient])
}

/// The payments in some blocks of a chain.
pub async fn in_blocks(
    db: &mut dyn Executor,
    chain: u64,
    blocks: &RangeInclusive<u64>,
) -> Result<Vec<UnclaimedPayment>> {
    let rest = "WHERE chain_id = ?1 AND block >= ?2 AND block <= ?3";
    list(db, rest, &values![chain, blocks.start(), blocks.end()]).await
}

/// Deletes payments, unless they have been stored with other blocks since.
pub async fn forget(db: &mut dyn Executor, gone: &[UnclaimedPayment]) -> Result<()> {
    let row = |UnclaimedPayment { arrival, .. }: &UnclaimedPayment| {
        values![arrival.tx.chain_id, arrival.tx.hash, arrival.block.number, arrival.block.hash]
    };
    let sql = "DELETE FROM unclaimed_payment WHERE chain_id = ?1 AND tx_hash = ?2 AND block = ?3 AND block_hash = ?4";
    db.execute(sql, &gone.iter().map(row).collect::<Vec<_>>()).await.map(drop)
}
