//! Payments that processors took, and their reversals.

use metering_core::backend::decision::{self, Decided, LoggedAction, ReversalChanges, ReversalFacts};
use metering_core::chains::TxHash;
use metering_core::payments::{PaymentRecord, ProcessorRef, ProcessorReversal};
use metering_core::store::{PaymentCredit, PaymentCredited, ProcessorReversed, ReversalChange};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{self, Record, find, insert, set};
use crate::row::Reader;
use crate::settlements::purchased_amount;
use crate::table::Column::Own;
use crate::table::Table;
use crate::value::Value;
use crate::{accounts, audit, auto_top_ups, payments, values};

impl Record for ProcessorReversal {
    const TABLE: Table = Table {
        name: "payment_reversal",
        key: &["processor", "reversal_id"],
        columns: &[
            Own("processor"),
            Own("reversal_id"),
            Own("tx_hash"),
            Own("amount"),
            Own("reason"),
            Own("reversed_at"),
            Own("restored_at"),
        ],
    };

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
pub async fn reversals(db: &mut dyn Executor, payment: &TxHash) -> Result<Vec<ProcessorReversal>> {
    let rest = "WHERE tx_hash = ?1 ORDER BY reversed_at, reversal_id {bytes}";
    record::list(db, rest, &values![payment]).await
}

/// Credits a payment.
pub async fn credit(
    db: &mut dyn Executor,
    credit: &PaymentCredit,
    processor: &ProcessorRef,
) -> Result<PaymentCredited> {
    let facts = payments::credit_facts(db, credit).await?;
    match decision::credit_processor_payment(credit.clone(), processor, facts) {
        Decided::Accepted((changes, action)) => {
            let account = payments::write_credit(db, changes).await?;
            log(db, &action).await?;
            Ok(PaymentCredited::Account(account))
        }
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Records a reversal, or its end.
pub async fn reverse(db: &mut dyn Executor, change: &ReversalChange) -> Result<ProcessorReversed> {
    let facts = facts(db, change).await?;
    let changes = match decision::reverse_processor_payment(change.clone(), facts)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    let ReversalChanges { reversal, is_known, record, posted, recorded, action } = changes;
    if let Some(posted) = &posted {
        db.post_entries(std::slice::from_ref(posted)).await?;
    }
    if is_known {
        let values = values![reversal.reference.processor(), reversal.reference.id(), reversal.restored_at];
        set::<ProcessorReversal>(db, &["restored_at"], &[values]).await?;
    } else {
        insert(db, &[reversal]).await?;
    }
    let (tx, settlement) = (record.payment.tx, record.settlement);
    let values = values![tx.chain_id, tx.hash, settlement.as_str(), settlement.reversed_at()];
    set::<PaymentRecord>(db, &["settlement", "reversed_at"], &[values]).await?;
    log(db, &action).await?;
    if recorded.reversal.restored_at.is_none() {
        auto_top_ups::payment_reversed(db, &tx.hash, change.now).await?;
    }
    Ok(ProcessorReversed::Recorded(Box::new(recorded)))
}

/// Charges do not change the account until the transaction ends.
async fn facts(db: &mut dyn Executor, change: &ReversalChange) -> Result<ReversalFacts<i64>> {
    let ReversalChange { reversal, payment, .. } = change;
    let tx = payment.tx();
    let account = match payments::by_tx(db, &tx).await? {
        Some(record) => accounts::locked(db, &record.account).await?,
        None => None,
    };
    let record = payments::by_tx(db, &tx).await?;
    let purchased = match (&account, &record) {
        (Some((row, _)), Some(record)) => purchased_amount(db, *row, record).await?,
        _ => 0,
    };
    let reversals = reversals(db, &tx.hash).await?;
    let named = "WHERE processor = ?1 AND reversal_id = ?2";
    let known = find(db, named, &values![reversal.processor(), reversal.id()]).await?;
    Ok(ReversalFacts { record, account, purchased, reversals, known })
}

async fn log(db: &mut dyn Executor, action: &LoggedAction) -> Result<()> {
    audit::log(db, &action.entry, &action.outcome).await.map(drop)
}
