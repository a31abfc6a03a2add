//! Payment records, which ensure that each transaction counts once, and payments for existing accounts.

use metering_core::Account;
use metering_core::backend::decision::{self, CreditChanges, CreditFacts, Decided};
use metering_core::chains::TxRef;
use metering_core::money::Currency;
use metering_core::payments::{
    ConvertedAmount, Payment, PaymentRecord, PaymentSettlement, PaymentUse, PaymentValue, ProcessorRef, SoldPlan,
};
use metering_core::store::{Cursor, Page, PaymentCredit, PaymentCredited};

use crate::executor::Executor;
use crate::fault::Result;
use crate::offers::rows;
use crate::record::{Record, find, table};
use crate::row::Reader;
use crate::table::Table;
use crate::transfer::WalletLink;
use crate::value::Value;
use crate::{accounts, numbered, quotes, receipts, values, wallets};

impl Record for PaymentRecord {
    const TABLE: Table = table!("payment" by ["chain_id", "tx_hash"] {
        Own(chain_id), Own(tx_hash), Own(payer), Own(recipient), Own(token), Own(amount), Own(block_number),
        Own(block_hash), Own(mined_at), Account(account), Own(used_as), Own(plan_id), Own(recorded_at), Own(plan_label),
        Own(bonus_credits), Own(token_symbol), Own(token_decimals), Own(reversed_at), Own(settlement),
        Own(value_currency), Own(value_amount), Own(value_rate), Own(value_source), Own(value_as_of), Own(processor),
        Own(processor_id)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let Payment { tx, payer, recipient, token, amount, block_number, block_hash, mined_at } = &self.payment;
        let mut values = values![tx.chain_id, tx.hash, payer, recipient, token, amount, block_number, block_hash];
        values.extend(values![mined_at, self.account, self.used_as, self.plan_id, self.recorded_at]);
        let sold = self.sold.as_ref();
        let (symbol, decimals) = (sold.map(|sold| &sold.token_symbol), sold.map(|sold| sold.token_decimals));
        let bonus = sold.and_then(|sold| sold.bonus_credits);
        values.extend(values![sold.map(|sold| &sold.label), bonus, symbol, decimals]);
        values.extend(values![self.settlement.reversed_at(), self.settlement.as_str()]);
        let converted = self.value.as_ref().and_then(|value| value.converted.as_ref());
        values.extend(values![self.value.as_ref().map(|value| value.currency), converted.map(|one| one.amount)]);
        values.extend(values![converted.map(|one| one.rate), converted.map(|one| &one.source)]);
        values.extend(values![converted.map(|one| one.as_of)]);
        let processor = self.processor.as_ref();
        values.extend(values![processor.map(ProcessorRef::processor), processor.map(ProcessorRef::id)]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let tx = TxRef { chain_id: row.next()?, hash: row.next()? };
        let (payer, recipient, token, amount) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let (block_number, block_hash, mined_at) = (row.next()?, row.next()?, row.next()?);
        let payment = Payment { tx, payer, recipient, token, amount, block_number, block_hash, mined_at };
        let (account, used_as, plan_id, recorded_at) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let sold = sold(row)?;
        let (reversed_at, settlement): (_, String) = (row.next()?, row.next()?);
        let settlement = PaymentSettlement::from_parts(&settlement, reversed_at)
            .ok_or_else(|| row.corrupt(format_args!("{settlement:?} is unknown or does not match reversed_at")))?;
        let (value, processor) = (value(row)?, processor(row)?);
        Ok(Self { payment, account, used_as, plan_id, sold, value, recorded_at, settlement, processor })
    }
}

/// The schema ensures that a plan without a label has nothing else.
fn sold(row: &mut Reader<'_>) -> Result<Option<SoldPlan>> {
    let (label, bonus_credits, symbol, decimals) = (row.next()?, row.next()?, row.next()?, row.next()?);
    Ok(match (label, symbol, decimals) {
        (Some(label), Some(token_symbol), Some(token_decimals)) => {
            Some(SoldPlan { label, bonus_credits, token_symbol, token_decimals })
        }
        _ => None,
    })
}

/// The schema ensures that a value has a currency, and all of the other columns or none.
fn value(row: &mut Reader<'_>) -> Result<Option<PaymentValue>> {
    let (currency, amount, rate): (Option<Currency>, _, _) = (row.next()?, row.next()?, row.next()?);
    let (source, as_of) = (row.next()?, row.next()?);
    let converted = match (amount, rate, source, as_of) {
        (Some(amount), Some(rate), Some(source), Some(as_of)) => Some(ConvertedAmount { amount, rate, source, as_of }),
        _ => None,
    };
    Ok(currency.map(|currency| PaymentValue { currency, converted }))
}

/// The schema ensures that both are set or neither is.
fn processor(row: &mut Reader<'_>) -> Result<Option<ProcessorRef>> {
    let (processor, id): (Option<String>, Option<String>) = (row.next()?, row.next()?);
    let names = processor.zip(id);
    let read = names.map(|(processor, id)| ProcessorRef::new(&processor, &id)).transpose();
    read.map_err(|wrong| row.corrupt(wrong))
}

/// The record of a transaction, if it was used.
pub async fn by_tx(db: &mut dyn Executor, tx: &TxRef) -> Result<Option<PaymentRecord>> {
    find(db, "WHERE chain_id = ?1 AND tx_hash = ?2", &values![tx.chain_id, tx.hash]).await
}

/// All records after a cursor, at most `limit`.
pub async fn list(db: &mut dyn Executor, after: Option<&Cursor>, limit: u32) -> Result<Page<PaymentRecord>> {
    numbered::page(db, "TRUE", Vec::new(), after, limit).await
}

/// Writes records of payments, deletes them from the unclaimed ones, and issues their receipts.
pub(crate) async fn insert(db: &mut dyn Executor, records: &[PaymentRecord]) -> Result<()> {
    numbered::insert(db, records).await?;
    receipts::issue(db, records).await?;
    let transaction = |PaymentRecord { payment, .. }: &PaymentRecord| values![payment.tx.chain_id, payment.tx.hash];
    let used: Vec<_> = records.iter().map(transaction).collect();
    db.execute("DELETE FROM unclaimed_payment WHERE chain_id = ?1 AND tx_hash = ?2", &used).await.map(drop)
}

/// Credits a payment to an existing account.
pub async fn credit(db: &mut dyn Executor, credit: &PaymentCredit) -> Result<PaymentCredited> {
    let Payment { payer, tx, .. } = credit.payment;
    if credit.used_as == PaymentUse::Topup && rows::is_for_usage(db, &payer, tx).await? {
        return Ok(PaymentCredited::TxUsed);
    }
    let facts = credit_facts(db, credit).await?;
    match decision::credit_payment(credit.clone(), facts) {
        Decided::Accepted(changes) => write_credit(db, changes).await.map(PaymentCredited::Account),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// The data that is read before a payment is credited. Charges do not change the account until the transaction ends.
pub async fn credit_facts(db: &mut dyn Executor, credit: &PaymentCredit) -> Result<CreditFacts<i64>> {
    Ok(CreditFacts {
        account: accounts::locked(db, &credit.account).await?,
        record: by_tx(db, &credit.payment.tx).await?,
        quote: quotes::paid_by(db, &credit.payment).await?,
    })
}

/// Writes the credit of a payment: entry, link, record and quote. Returns the account after it.
pub async fn write_credit(db: &mut dyn Executor, changes: CreditChanges<i64>) -> Result<Account> {
    let CreditChanges { posted, record, link, quote } = changes;
    let (row, tx) = (posted.row, record.payment.tx);
    db.post_entries(std::slice::from_ref(&posted)).await?;
    if let Some(wallet) = link {
        wallets::link(db, &WalletLink { wallet, account: posted.account.id.clone() }).await?;
    }
    insert(db, &[record]).await?;
    if let Some((nonce, state)) = quote {
        quotes::consume(db, &nonce, row, tx, &state).await?;
    }
    Ok(posted.account)
}
