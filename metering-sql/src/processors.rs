//! Payments that processors took: credits them, and records their reversals.

use metering_core::backend::decision::{self, Decided, LoggedAction, ReversalChanges, ReversalFacts};
use metering_core::payments::{PaymentRecord, ProcessorRef, ProcessorReversal, TopUpStop};
use metering_core::store::{PaymentCredit, PaymentCredited, ProcessorReversed, ReversalChange};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{find, insert, set};
use crate::reversals::written;
use crate::settlements::purchased_amount;
use crate::{accounts, audit, auto_top_ups, payments, receipts, values};

pub use crate::reversals::of_payment as reversals;

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
    let ReversalChanges { reversal, is_known, record, posted, notes, recorded, action } = changes;
    if let Some(posted) = &posted {
        db.post_entries(std::slice::from_ref(posted)).await?;
    }
    receipts::issue_notes(db, &record, &notes, change.now).await?;
    if is_known {
        let ProcessorReversal { reference, reversed_at, restored_at, interruptions, .. } = &reversal;
        let mut values = values![reference.processor(), reference.id(), reversed_at, restored_at];
        values.extend(values![written(interruptions)]);
        set::<ProcessorReversal>(db, &["reversed_at", "restored_at", "interruptions"], &[values]).await?;
    } else {
        insert(db, &[reversal]).await?;
    }
    let (tx, settlement) = (record.payment.tx, record.settlement);
    let values = values![tx.chain_id, tx.hash, settlement.as_str(), settlement.reversed_at()];
    set::<PaymentRecord>(db, &["settlement", "reversed_at"], &[values]).await?;
    log(db, &action).await?;
    if recorded.reversal.restored_at.is_none() {
        // For every kind of payment: the balance is low because credits were taken back, and the card must not be
        // charged for them again.
        auto_top_ups::stop(db, &record.account, TopUpStop::Reversed, change.now).await?;
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
