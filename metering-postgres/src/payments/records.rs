//! Payment records, which ensure that each transaction counts once, and payments for existing accounts.

use metering_core::backend::decision::{self, CreditChanges, CreditFacts, Decided};
use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};
use metering_core::chains::TxRef;
use metering_core::payments::{Payment, PaymentRecord, PaymentSettlement, PaymentUse, SoldPlan};
use metering_core::store::{Cursor, Page, PaymentCredit, PaymentCredited};
use metering_core::{Account, Credits, Timestamp};
use tokio_postgres::Row;

use crate::access::{accounts, wallets};
use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::money::ledger;
use crate::payments::quotes;
use crate::rows::{Values, address, all, execute, first, optional_bytes, parsed, timestamp, tx, units, units_column};
use crate::transactions::serialized::SerializedWrite;

pub(crate) const COLUMNS: &str = "p.id, p.chain_id, p.tx_hash, p.payer, p.recipient, p.token, p.amount, p.block_number, \
     p.mined_at, a.org_id, p.used_as, p.plan_id, p.recorded_at, p.block_hash, p.settlement, p.reversed_at, \
     p.plan_label, p.bonus_credits, p.token_symbol, p.token_decimals";

pub(crate) fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM payment p JOIN account a ON a.id = p.account WHERE {condition}")
}

/// The record of a transaction, if it was used.
pub(crate) async fn by_tx<C: GenericClient>(client: &C, tx: &TxRef) -> Result<Option<PaymentRecord>> {
    let values: Values<'_> = &[&tx.chain_id.cast_signed(), &tx.hash.as_bytes().as_slice()];
    let row = first(client, &select("p.chain_id = $1 AND p.tx_hash = $2"), values).await?;
    Ok(row.as_ref().map(record).transpose()?.map(|(_, record)| record))
}

/// Records after a row number, at most `limit`.
pub(crate) async fn list<C: GenericClient>(
    client: &C,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<PaymentRecord>> {
    let sql = select("p.id > $1 ORDER BY p.id LIMIT $2");
    let rows = all(client, &sql, &[&row_of_cursor(after)?, &one_more_than(limit)]).await?;
    Ok(page_of_rows(rows.iter().map(record).collect::<Result<_>>()?, limit))
}

/// Credits a payment to an existing account.
pub(crate) async fn credit(write: &SerializedWrite<'_>, credit: PaymentCredit) -> Result<PaymentCredited> {
    let facts = credit_facts(write, &credit).await?;
    match decision::credit_payment(credit, facts) {
        Decided::Accepted(changes) => write_credit(write, changes).await.map(PaymentCredited::Account),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// What is read before a payment is credited. Locks the account's meter.
pub(crate) async fn credit_facts(write: &SerializedWrite<'_>, credit: &PaymentCredit) -> Result<CreditFacts<i64>> {
    let client = write.client();
    Ok(CreditFacts {
        account: accounts::locked(client, &credit.account).await?,
        record: by_tx(client, &credit.payment.tx).await?,
        quote: quotes::paid_by(client, &credit.payment).await?,
    })
}

/// Writes the credit of a payment: entry, link, record and quote. Returns the account after it.
pub(crate) async fn write_credit(write: &SerializedWrite<'_>, changes: CreditChanges<i64>) -> Result<Account> {
    let CreditChanges { posted, record, link, quote } = changes;
    ledger::write(write.client(), &posted).await?;
    if let Some(wallet) = link {
        wallets::link(write, &wallet, posted.row).await?;
    }
    insert(write, posted.row, &record).await?;
    if let Some((nonce, state)) = quote {
        quotes::consume(write, &nonce, posted.row, record.payment.tx, &state).await?;
    }
    Ok(posted.account)
}

/// Inserts a record. `account` is the row number of its account.
pub(crate) async fn insert(write: &SerializedWrite<'_>, account: i64, record: &PaymentRecord) -> Result<()> {
    let sql = "INSERT INTO payment (id, chain_id, tx_hash, payer, recipient, token, amount, block_number, mined_at, \
               account, used_as, plan_id, recorded_at, block_hash, settlement, reversed_at, plan_label, bonus_credits, \
               token_symbol, token_decimals) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)";
    let id = write.next_id().await?;
    let Payment { tx, payer, recipient, token, amount, block_number, block_hash, mined_at } = &record.payment;
    let (amount, sold) = (units_column(*amount), record.sold.as_ref());
    let values: Values<'_> = &[
        &id,
        &tx.chain_id.cast_signed(),
        &tx.hash.as_bytes().as_slice(),
        &payer.as_bytes().as_slice(),
        &recipient.as_bytes().as_slice(),
        &token.as_bytes().as_slice(),
        &amount.as_slice(),
        &block_number.cast_signed(),
        &mined_at.unix_millis(),
        &account,
        &record.used_as.as_str(),
        &record.plan_id,
        &record.recorded_at.unix_millis(),
        &block_hash.as_ref().map(<[u8; 32]>::as_slice),
        &record.settlement.as_str(),
        &record.settlement.reversed_at().map(Timestamp::unix_millis),
        &sold.map(|sold| sold.label.as_str()),
        &sold.and_then(|sold| sold.bonus_credits).map(Credits::atoms),
        &sold.map(|sold| sold.token_symbol.as_str()),
        &sold.map(|sold| i64::from(sold.token_decimals)),
    ];
    execute(write.client(), sql, values).await.map(drop)
}

/// Reads a record and its row number.
pub(crate) fn record(row: &Row) -> Result<(i64, PaymentRecord)> {
    let block_number: i64 = row.try_get(7)?;
    let payment = Payment {
        tx: tx(row, 1)?,
        payer: address(row, 3)?,
        recipient: address(row, 4)?,
        token: address(row, 5)?,
        amount: units(row, 6)?,
        block_number: block_number.cast_unsigned(),
        block_hash: optional_bytes(row, 13)?,
        mined_at: timestamp(row, 8)?,
    };
    let name: &str = row.try_get(10)?;
    let used_as = PaymentUse::from_name(name);
    let used_as = used_as.ok_or_else(|| corrupt(format_args!("unknown use {name:?} of a payment")))?;
    let (account, plan_id, recorded_at) = (parsed(row, 9)?, row.try_get(11)?, timestamp(row, 12)?);
    let (name, reversed_at): (&str, Option<i64>) = (row.try_get(14)?, row.try_get(15)?);
    let settlement = PaymentSettlement::from_parts(name, reversed_at.map(Timestamp::from_unix_millis));
    let settlement = settlement.ok_or_else(|| corrupt(format_args!("unknown settlement {name:?} of a payment")))?;
    let sold = sold(row)?;
    Ok((row.try_get(0)?, PaymentRecord { payment, account, used_as, plan_id, sold, recorded_at, settlement }))
}

fn sold(row: &Row) -> Result<Option<SoldPlan>> {
    let Some(label) = row.try_get(16)? else { return Ok(None) };
    let bonus_credits = row.try_get::<_, Option<i64>>(17)?.map(Credits::from_atoms);
    let decimals: i64 = row.try_get(19)?;
    let out_of_range = |_| corrupt(format_args!("a token of a payment has {decimals} decimals"));
    let token_decimals = u8::try_from(decimals).map_err(out_of_range)?;
    Ok(Some(SoldPlan { label, bonus_credits, token_symbol: row.try_get(18)?, token_decimals }))
}
