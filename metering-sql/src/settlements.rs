//! The settlement status of credited payments.

use metering_core::backend::decision::{self, Decided, SettleChanges, SettleFacts};
use metering_core::money::LedgerKind;
use metering_core::payments::{PaymentRecord, PaymentUse};
use metering_core::store::{Cursor, Page, PaymentSettled, SettlementChange};

use crate::executor::Executor;
use crate::fault::Result;
use crate::offers::states;
use crate::record::set;
use crate::{accounts, ledger, numbered, payments, receipts, values};

/// A chain's records that are not final, after a cursor, at most `limit`.
pub async fn unsettled(
    db: &mut dyn Executor,
    chain_id: u64,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<PaymentRecord>> {
    numbered::page(db, "chain_id = ?3 AND settlement <> 'final'", values![chain_id], after, limit).await
}

/// Changes a payment's settlement status, if its record is still the one that the caller saw.
pub async fn settle(db: &mut dyn Executor, change: &SettlementChange) -> Result<PaymentSettled> {
    let seen = &change.seen;
    let account = accounts::locked(db, &seen.account).await?;
    let record = payments::by_tx(db, &seen.payment.tx).await?;
    let purchased = match &account {
        Some((row, _)) => purchased_amount(db, *row, seen).await?,
        None => 0,
    };
    let facts = SettleFacts { record, account, purchased };
    let SettleChanges { record, posted, account } = match decision::settle_payment(change, facts)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    if let Some(posted) = &posted {
        db.post_entries(std::slice::from_ref(posted)).await?;
        receipts::issue_for_removal(db, &record, posted, change.now).await?;
    }
    update(db, &record).await?;
    if record.used_as == PaymentUse::Authorization {
        states::payment_took(db, record.payment.tx, &change.step).await?;
    }
    Ok(PaymentSettled::Changed(account))
}

/// How many atoms a payment's purchase credited. `account` is the row number of its account.
pub(crate) async fn purchased_amount(db: &mut dyn Executor, account: i64, record: &PaymentRecord) -> Result<i128> {
    let ([signup, topup], tx) = (LedgerKind::PURCHASES, record.payment.tx);
    let purchases = "account = ?1 AND tx_chain_id = ?2 AND tx_hash = ?3 AND kind IN (?4, ?5)";
    ledger::sum(db, purchases, &values![account, tx.chain_id, tx.hash, signup, topup]).await
}

async fn update(db: &mut dyn Executor, record: &PaymentRecord) -> Result<()> {
    let columns = ["block_number", "block_hash", "mined_at", "settlement", "reversed_at"];
    let (payment, settlement) = (&record.payment, record.settlement);
    let mut values = values![payment.tx.chain_id, payment.tx.hash, payment.block_number, payment.block_hash];
    values.extend(values![payment.mined_at, settlement.as_str(), settlement.reversed_at()]);
    set::<PaymentRecord>(db, &columns, &[values]).await.map(drop)
}
