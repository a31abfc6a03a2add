//! Verifies that every balance equals the sum of ledger, usage and open holds, that no budget counts less than was used,
//! that every payment counted once, also for its authorization, and that catalogues are those that were recorded.

mod budgets;
mod payments;

use std::collections::HashMap;

use metering_core::AccountId;
use metering_core::access::Totals;
use metering_core::backend::{Books, credits};
use metering_core::store::Verification;

use crate::executor::{Executor, UsagePart};
use crate::fault::{Result, corrupt};
use crate::row::only;
use crate::sum::{SUM, wide_sum};
use crate::{prices, values};

/// A query that counts what is wrong, and what that is.
pub type Check = (&'static str, &'static str);

/// Accounts without the key that they were created with.
pub const WITHOUT_KEY: Check = (
    "SELECT count(*) FROM account a WHERE NOT EXISTS (SELECT 1 FROM api_key k WHERE k.account = a.id AND k.number = 0)",
    "accounts do not have the key they should have",
);

/// Holds that no process could settle.
pub const HOLD_WITHOUT_KEY: Check = (
    "SELECT count(*) FROM hold h \
     WHERE NOT EXISTS (SELECT 1 FROM api_key k WHERE k.account = h.account AND k.number = h.key) \
       OR NOT EXISTS (SELECT 1 FROM usage_line n WHERE n.id = h.line)",
    "holds belong to no key or usage line",
);

/// Accounts that hold their email address although it waits for verification, or do not hold it otherwise.
const MISHELD: Check = (
    "SELECT count(*) FROM account WHERE (email IS NOT NULL AND email_credits IS NULL) <> (email_folded IS NOT NULL)",
    "accounts hold an email address that they should not, or lack theirs",
);

/// Tables whose rows belong to accounts: a row without an account would be money without an owner.
const OWNED: [&str; 5] = ["usage_daily", "ledger", "meter", "{activity}", "payment"];

/// `LEFT JOIN`, to find accounts without a meter, which have no balance.
const RECORDED: &str = "SELECT a.id, a.org_id, m.balance, m.purchased, m.granted, m.used, {held} \
     FROM account a LEFT JOIN meter m ON m.account = a.id ORDER BY a.id";

/// Verifies the books. Returns an error if something other than a sum is wrong.
pub async fn verify(db: &mut dyn Executor) -> Result<Verification> {
    let orphans = |table| {
        format!("SELECT count(*) FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM account a WHERE a.id = t.account)")
    };
    for table in OWNED {
        refuse(db, &orphans(table), "rows of usage, ledger or payments belong to no account").await?;
    }
    for (sql, problem) in [HOLD_WITHOUT_KEY, WITHOUT_KEY, MISHELD] {
        refuse(db, sql, problem).await?;
    }
    payments::verify(db).await?;
    prices::verify(db).await?;
    let mut books = books(db).await?;
    let restarted_budgets = budgets::discrepancies(db).await?;
    let mut verification = Verification { accounts: 0, discrepancies: Vec::new(), restarted_budgets };
    let mut recorded = Vec::new();
    let mut read = |row: &crate::Row| {
        let amounts: [Option<_>; 5] = [row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?];
        recorded.push((row.get(0)?, row.get::<AccountId>(1)?, amounts));
        Ok(())
    };
    db.each(RECORDED, &[], &mut read).await?;
    for (row, id, amounts) in recorded {
        let (books, held) = books.remove(&row).unwrap_or_default();
        let [Some(balance), Some(purchased), Some(granted), Some(used), recorded_held] = amounts else {
            return Err(corrupt(format_args!("account {id} has no meter")));
        };
        // Where it is not recorded, a balance is wrong if this is.
        let held = recorded_held.map_or_else(|| credits(held), Ok)?;
        let recorded = db.totals(row, Totals { balance, purchased, granted, used, held })?;
        verification.accounts += 1;
        verification.discrepancies.extend(books.discrepancies(&id, recorded)?);
    }
    match books.keys().next() {
        Some(row) => Err(corrupt(format_args!("account {row} was used, but is missing"))),
        None => Ok(verification),
    }
}

async fn refuse(db: &mut dyn Executor, sql: &str, problem: &str) -> Result<()> {
    match only(&db.query(sql, &[]).await?)?.get::<i64>(0)? {
        0 => Ok(()),
        count => Err(corrupt(format_args!("{count} {problem}"))),
    }
}

/// The sum of ledger, usage and open holds of each account, and of the open holds alone.
async fn books(db: &mut dyn Executor) -> Result<HashMap<i64, (Books, i128)>> {
    let mut books: HashMap<i64, (Books, i128)> = HashMap::new();
    let sql = format!("SELECT account, kind, {SUM} FROM ledger GROUP BY account, kind");
    let mut add = |row: &crate::Row| {
        books.entry(row.get(0)?).or_default().0.add_entries(row.get(1)?, wide_sum(row, 2)?);
        Ok(())
    };
    db.each(&sql, &[], &mut add).await?;
    let sql = format!("SELECT account, {SUM} FROM usage_daily GROUP BY account");
    let mut add = |row: &crate::Row| {
        books.entry(row.get(0)?).or_default().0.add_usage(wide_sum(row, 1)?);
        Ok(())
    };
    db.each(&sql, &[], &mut add).await?;
    for (account, UsagePart { atoms, .. }) in db.unfolded_usage(None).await? {
        books.entry(account).or_default().0.add_usage(atoms);
    }
    let sql = format!("SELECT account, {SUM} FROM hold WHERE settled_at IS NULL GROUP BY account");
    let mut add = |row: &crate::Row| {
        let (books, held) = books.entry(row.get(0)?).or_default();
        *held = wide_sum(row, 1)?;
        books.add_held(*held);
        Ok(())
    };
    db.each(&sql, &values![], &mut add).await?;
    Ok(books)
}
