//! The terms of receipts, and what is stored of receipts and credit notes when they are issued: in the transaction that
//! records their payment or reversal, so that consecutive numbers have no gaps.

use metering_core::backend::decision::EntryChanges;
use metering_core::chains::TxRef;
use metering_core::money::LedgerKind;
use metering_core::payments::{
    ConsecutiveNumber, CreditNoteNumber, IssuedReceipt, NumberPrefix, PaymentRecord, PaymentUse, ReceiptTerms,
    ReceiptTermsRecord, SalesTax, Seller,
};
use metering_core::{AccountId, Timestamp};

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::record::{self, Record, insert};
use crate::row::{Reader, only};
use crate::table::Column::{Account, Own};
use crate::table::Table;
use crate::value::Value;
use crate::{buyers, values};

impl Record for ReceiptTermsRecord {
    const TABLE: Table = Table {
        name: "receipt_terms",
        key: &["id"],
        columns: &[
            Own("id"),
            Own("since"),
            Own("seller_name"),
            Own("seller_address"),
            Own("seller_tax_id"),
            Own("seller_contact"),
            Own("tax_name"),
            Own("tax_rate"),
            Own("reverse_charge"),
            Own("number_prefix"),
        ],
    };

    fn values(&self) -> Result<Vec<Value>> {
        let Self { number, since, terms: ReceiptTerms { seller, tax, numbering } } = self;
        let mut values = values![number, since, seller.name, seller.address.join("\n"), seller.tax_id, seller.contact];
        let tax = tax.as_ref();
        values.extend(values![tax.map(|tax| &tax.name), tax.map(|tax| tax.rate)]);
        values.extend(values![u8::from(tax.is_some_and(|tax| tax.reverse_charge)), numbering]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (number, since, name, address): (_, _, _, String) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let (tax_id, contact) = (row.next()?, row.next()?);
        let seller = Seller { name, address: address.lines().map(str::to_owned).collect(), tax_id, contact };
        let (tax_name, rate): (Option<String>, _) = (row.next()?, row.next()?);
        let reverse_charge = row.next::<u8>()? == 1;
        // The schema ensures that both are set or neither is.
        let tax = tax_name.zip(rate).map(|(name, rate)| SalesTax { name, rate, reverse_charge });
        let numbering: Option<NumberPrefix> = row.next()?;
        Ok(Self { number, since, terms: ReceiptTerms { seller, tax, numbering } })
    }
}

impl Record for IssuedReceipt {
    const TABLE: Table = Table {
        name: "issued_receipt",
        key: &["chain_id", "tx_hash", "part"],
        columns: &[
            Own("chain_id"),
            Own("tx_hash"),
            Own("part"),
            Account("account"),
            Own("terms"),
            Own("reverse_charge"),
            Own("series"),
            Own("sequence"),
        ],
    };

    fn values(&self) -> Result<Vec<Value>> {
        let Self { account, tx, part, terms, reverse_charge, number } = self;
        let number = number.as_ref();
        let mut values = values![tx.chain_id, tx.hash, part, account, terms, u8::from(*reverse_charge)];
        values.extend(values![number.map(|number| &number.series), number.map(|number| number.sequence)]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let tx = TxRef { chain_id: row.next()?, hash: row.next()? };
        let (part, account, terms) = (row.next()?, row.next()?, row.next()?);
        let reverse_charge = row.next::<u8>()? == 1;
        let (series, sequence): (Option<String>, Option<u32>) = (row.next()?, row.next()?);
        let number = series.zip(sequence).map(|(series, sequence)| ConsecutiveNumber { series, sequence });
        Ok(Self { account, tx, part, terms, reverse_charge, number })
    }
}

/// All terms, by number.
pub async fn terms(db: &mut dyn Executor) -> Result<Vec<ReceiptTermsRecord>> {
    record::list(db, "ORDER BY receipt_terms.id", &[]).await
}

/// The receipts and credit notes of an account.
pub async fn of_account(db: &mut dyn Executor, account: &AccountId) -> Result<Vec<IssuedReceipt>> {
    let of = "WHERE issued_receipt.account = (SELECT a.id FROM account a WHERE a.org_id = ?1) \
              ORDER BY issued_receipt.chain_id, issued_receipt.tx_hash, issued_receipt.part";
    record::list(db, of, &values![account]).await
}

/// Sets the terms of receipts from now on, unless they are in force already or are the defaults.
pub async fn set_terms(db: &mut dyn Executor, terms: &ReceiptTerms, now: Timestamp) -> Result<()> {
    let next = |number| ReceiptTermsRecord { number, since: now, terms: terms.clone() };
    if newest(db).await?.is_none() {
        if !terms.are_special() {
            return Ok(());
        }
        // Of several nodes that start at the same time, one writes the first terms.
        let sql = format!("{} ON CONFLICT (id) DO NOTHING", ReceiptTermsRecord::TABLE.insert());
        db.execute(&sql, &[next(1).values()?]).await?;
    }
    lock(db).await?;
    match newest(db).await? {
        Some(newest) if newest.terms != *terms => insert(db, &[next(newest.number + 1)]).await.map(drop),
        _ => Ok(()),
    }
}

/// Issues the receipts of payments that are recorded now. Those of payments to another service have none.
pub(crate) async fn issue(db: &mut dyn Executor, records: &[PaymentRecord]) -> Result<()> {
    let Some(terms) = newest(db).await? else { return Ok(()) };
    for record in records.iter().filter(|record| record.used_as != PaymentUse::Imported) {
        let (account, tx, now) = (record.account.clone(), record.payment.tx, record.recorded_at);
        let may_owe = terms.terms.tax.as_ref().is_some_and(|tax| tax.reverse_charge);
        let buyers = if may_owe { buyers::list(db, &account).await? } else { Vec::new() };
        let buyer = buyers.iter().find(|buyer| buyer.covers(now)).map(|found| &found.buyer);
        let reverse_charge = terms.terms.is_reverse_charge(buyer);
        let number = next_number(db, &terms.terms, now).await?;
        let receipt = IssuedReceipt { account, tx, part: 0, terms: terms.number, reverse_charge, number };
        insert(db, &[receipt]).await?;
    }
    Ok(())
}

/// Issues the new credit notes for reversals that a processor reported.
pub(crate) async fn issue_notes(
    db: &mut dyn Executor,
    record: &PaymentRecord,
    notes: &[CreditNoteNumber],
    now: Timestamp,
) -> Result<()> {
    let (tx, known) =
        (record.payment.tx, "SELECT 1 FROM issued_receipt WHERE chain_id = ?1 AND tx_hash = ?2 AND part = ?3");
    for part in notes.iter().map(CreditNoteNumber::part) {
        // An earlier version issued one for each reversal, even while others took back all.
        if db.query(known, &values![tx.chain_id, tx.hash, part]).await?.is_empty() {
            issue_note(db, record, part, now).await?;
        }
    }
    Ok(())
}

/// Issues the credit note for a payment that its chain removed. The ledger has the entry already.
pub(crate) async fn issue_for_removal(
    db: &mut dyn Executor,
    record: &PaymentRecord,
    posted: &EntryChanges<i64>,
    now: Timestamp,
) -> Result<()> {
    if posted.entry.kind != LedgerKind::PaymentReversed {
        return Ok(());
    }
    let tx = record.payment.tx;
    let removals = "SELECT count(*) FROM ledger WHERE tx_chain_id = ?1 AND tx_hash = ?2 AND kind = ?3";
    let rows = db.query(removals, &values![tx.chain_id, tx.hash, LedgerKind::PaymentReversed]).await?;
    issue_note(db, record, only(&rows)?.get(0)?, now).await
}

/// A credit note has the tax of its receipt, so only its number is stored.
async fn issue_note(db: &mut dyn Executor, record: &PaymentRecord, part: u32, now: Timestamp) -> Result<()> {
    let Some(terms) = newest(db).await? else { return Ok(()) };
    let number = next_number(db, &terms.terms, now).await?;
    let (account, tx) = (record.account.clone(), record.payment.tx);
    let note = IssuedReceipt { account, tx, part, terms: terms.number, reverse_charge: false, number };
    insert(db, &[note]).await.map(drop)
}

async fn newest(db: &mut dyn Executor) -> Result<Option<ReceiptTermsRecord>> {
    record::find(db, "ORDER BY receipt_terms.id DESC LIMIT 1", &[]).await
}

/// The next number of the series. It is taken until the transaction ends, and free again if the transaction fails.
async fn next_number(db: &mut dyn Executor, terms: &ReceiptTerms, now: Timestamp) -> Result<Option<ConsecutiveNumber>> {
    let Some(prefix) = &terms.numbering else { return Ok(None) };
    lock(db).await?;
    let series = prefix.series(now);
    let rows = db.query("SELECT max(sequence) FROM issued_receipt WHERE series = ?1", &values![series]).await?;
    let last: Option<u32> = only(&rows)?.get(0)?;
    let sequence = last.unwrap_or(0).checked_add(1).ok_or_else(|| corrupt("a series of receipts is full"))?;
    Ok(Some(ConsecutiveNumber { series, sequence }))
}

/// Waits for other transactions that take numbers or set terms. Each locks the first terms.
async fn lock(db: &mut dyn Executor) -> Result<()> {
    db.query("SELECT m.id FROM receipt_terms m WHERE m.id = 1 {lock m}", &[]).await.map(drop)
}
