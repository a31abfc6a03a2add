//! The settlement status of credited payments, and of the authorizations that they were credited for.

use metering_core::Timestamp;
use metering_core::backend::decision::{self, Decided, SettleChanges, SettleFacts};
use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};
use metering_core::money::LedgerKind;
use metering_core::payments::{PaymentRecord, PaymentUse};
use metering_core::store::{Cursor, Page, PaymentSettled, SettlementChange};

use crate::access::accounts;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::money::ledger;
use crate::money::sum::{SUM, wide_sum};
use crate::offers::states;
use crate::payments::records::{by_tx, record, select};
use crate::rows::{Values, all, execute, one};
use crate::transactions::serialized::SerializedWrite;

/// A chain's records that are not final, after a row number, at most `limit`.
pub(crate) async fn unsettled<C: GenericClient>(
    client: &C,
    chain_id: u64,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<PaymentRecord>> {
    let sql = select("p.chain_id = $1 AND p.settlement <> 'final' AND p.id > $2 ORDER BY p.id LIMIT $3");
    let rows = all(client, &sql, &[&chain_id.cast_signed(), &row_of_cursor(after)?, &one_more_than(limit)]).await?;
    Ok(page_of_rows(rows.iter().map(record).collect::<Result<_>>()?, limit))
}

/// Changes a payment's settlement status, if its record is still the one that the caller saw.
pub(crate) async fn settle(write: &SerializedWrite<'_>, change: SettlementChange) -> Result<PaymentSettled> {
    let (client, seen) = (write.client(), &change.seen);
    let account = accounts::locked(client, &seen.account).await?;
    let record = by_tx(client, &seen.payment.tx).await?;
    let purchased = match &account {
        Some((row, _)) => purchased_amount(client, *row, seen).await?,
        None => 0,
    };
    let facts = SettleFacts { record, account, purchased };
    let SettleChanges { record, posted, account } = match decision::settle_payment(&change, facts)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    if let Some(posted) = &posted {
        ledger::write(write.client(), posted).await?;
    }
    update(client, &record).await?;
    if record.used_as == PaymentUse::Authorization {
        states::payment_took(write, record.payment.tx, &change.step).await?;
    }
    Ok(PaymentSettled::Changed(account))
}

/// How many atoms a payment's purchase credited. `account` is the row number of its account.
async fn purchased_amount<C: GenericClient>(client: &C, account: i64, record: &PaymentRecord) -> Result<i128> {
    let sql =
        format!("SELECT {SUM} FROM ledger WHERE account = $1 AND tx_chain_id = $2 AND tx_hash = $3 AND kind = ANY($4)");
    let kinds: Vec<&str> = LedgerKind::PURCHASES.map(LedgerKind::as_str).to_vec();
    let tx = record.payment.tx;
    let values: Values<'_> = &[&account, &tx.chain_id.cast_signed(), &tx.hash.as_bytes().as_slice(), &kinds];
    wide_sum(&one(client, &sql, values).await?, 0)
}

async fn update<C: GenericClient>(client: &C, record: &PaymentRecord) -> Result<()> {
    let sql = "UPDATE payment SET block_number = $3, block_hash = $4, mined_at = $5, settlement = $6, reversed_at = $7 \
               WHERE chain_id = $1 AND tx_hash = $2";
    let payment = &record.payment;
    let values: Values<'_> = &[
        &payment.tx.chain_id.cast_signed(),
        &payment.tx.hash.as_bytes().as_slice(),
        &payment.block_number.cast_signed(),
        &payment.block_hash.as_ref().map(<[u8; 32]>::as_slice),
        &payment.mined_at.unix_millis(),
        &record.settlement.as_str(),
        &record.settlement.reversed_at().map(Timestamp::unix_millis),
    ];
    execute(client, sql, values).await.map(drop)
}
