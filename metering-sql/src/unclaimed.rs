//! Payments that arrived and that no account has.

use std::ops::RangeInclusive;

use metering_core::chains::{Address, Block, TokenUnits, TxRef};
use metering_core::payments::{Arrival, Payment, PaymentFault, PaymentTarget, UnclaimedPayment};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{Record, list};
use crate::row::{Reader, only};
use crate::table::Column::Own;
use crate::table::Table;
use crate::value::Value;
use crate::{payments, values};

impl Record for UnclaimedPayment {
    const TABLE: Table = Table {
        name: "unclaimed_payment",
        key: &["chain_id", "tx_hash", "token", "recipient", "block"],
        columns: &[
            Own("chain_id"),
            Own("tx_hash"),
            Own("token"),
            Own("recipient"),
            Own("block"),
            Own("block_hash"),
            Own("mined_at"),
            Own("payer"),
            Own("amount"),
            Own("transfers"),
            Own("seen_at"),
        ],
    };

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

/// The newest payments, at most `limit`, and how many there are.
pub async fn newest(db: &mut dyn Executor, limit: u32) -> Result<(Vec<UnclaimedPayment>, u64)> {
    let rows = db.query("SELECT count(*) FROM unclaimed_payment", &[]).await?;
    let order = "ORDER BY mined_at DESC, block DESC, chain_id, tx_hash, token, recipient LIMIT ?1";
    Ok((list(db, order, &values![limit]).await?, only(&rows)?.get(0)?))
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
