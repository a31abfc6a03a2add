//! The buyer's details for an account's receipts, with the time for which they are valid.

use metering_core::backend::decision::{self, BuyerChanges, BuyerFacts, Decided};
use metering_core::money::LedgerKind;
use metering_core::payments::{Buyer, BuyerRecord};
use metering_core::store::ReceiptBuyerAdded;
use metering_core::{AccountId, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{self, Record, delete, put, table};
use crate::row::Reader;
use crate::table::Table;
use crate::value::Value;
use crate::{accounts, ledger, values};

impl Record for BuyerRecord {
    const TABLE: Table = table!("buyer" by ["account", "since"] {
        Account(account), Own(since), Own(until), Own(name), Own(address), Own(tax_id)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let Self { account, since, until, buyer } = self;
        Ok(values![account, since, until, buyer.name(), buyer.address().join("\n"), buyer.tax_id()])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (account, since, until) = (row.next()?, row.next()?, row.next()?);
        let (name, address, tax_id): (String, String, Option<String>) = (row.next()?, row.next()?, row.next()?);
        let lines: Vec<&str> = address.lines().collect();
        let buyer = Buyer::new(&name, &lines, tax_id.as_deref());
        let buyer = buyer.map_err(|wrong| row.corrupt(format_args!("not the details of a buyer: {wrong:?}")))?;
        Ok(Self { account, since, until, buyer })
    }
}

/// The records of an account, by time.
pub async fn list(db: &mut dyn Executor, account: &AccountId) -> Result<Vec<BuyerRecord>> {
    let condition = "WHERE buyer.account = (SELECT a.id FROM account a WHERE a.org_id = ?1) ORDER BY buyer.since";
    record::list(db, condition, &values![account]).await
}

/// Changes the details of an account. Whether there is such an account that is not revoked.
pub async fn set(db: &mut dyn Executor, id: &AccountId, buyer: Option<&Buyer>, now: Timestamp) -> Result<bool> {
    // No purchase is recorded until the transaction ends, and erased details are not restored.
    let found = accounts::locked(db, id).await?.filter(|(_, account)| account.revoked_at.is_none());
    let Some((row, _)) = found else { return Ok(false) };
    let records = list(db, id).await?;
    let has_bought = match records.last() {
        Some(newest) => has_bought_since(db, row, newest.since).await?,
        None => false,
    };
    let BuyerChanges { deleted, written } = decision::set_buyer(id, BuyerFacts { records, has_bought }, buyer, now);
    if let Some(since) = deleted {
        delete::<BuyerRecord>(db, "WHERE account = ?1 AND since = ?2", values![row, since]).await?;
    }
    put(db, &written).await?;
    Ok(true)
}

/// Adds the current details of an account to the receipts of a moment.
pub async fn add_to_receipt(db: &mut dyn Executor, id: &AccountId, bought_at: Timestamp) -> Result<ReceiptBuyerAdded> {
    if accounts::locked(db, id).await?.is_none() {
        return Ok(ReceiptBuyerAdded::NoBuyer);
    }
    match decision::add_receipt_buyer(&list(db, id).await?, bought_at) {
        Decided::Accepted(added) => {
            put(db, &[added]).await?;
            Ok(ReceiptBuyerAdded::Added)
        }
        Decided::Refused(refusal) => Ok(refusal),
    }
}

async fn has_bought_since(db: &mut dyn Executor, account: i64, since: Timestamp) -> Result<bool> {
    let [signup, topup] = LedgerKind::PURCHASES;
    let purchases = "account = ?1 AND created_at >= ?2 AND kind IN (?3, ?4)";
    Ok(ledger::sum(db, purchases, &values![account, since, signup, topup]).await? != 0)
}
