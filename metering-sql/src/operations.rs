//! The report about the business, except for usage, which each backend adds up in its own way.
//!
//! The database adds up what is here: memory depends on days and payments, not on accounts and ledger entries.

use std::collections::HashMap;

use metering_core::backend::OperationsSums;
use metering_core::chains::{TokenUnits, TxHash, TxRef};
use metering_core::operators::OperationsReport;
use metering_core::payments::{PaymentRecord, ProcessorReversal};
use metering_core::usage::{DayRange, UsageLine};
use metering_core::{Day, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::list;
use crate::sum::{SUM, wide_sum};
use crate::{accounts, values};

/// By row numbers of accounts and usage lines.
type Sums = OperationsSums<i64, i64>;

/// The UTC day of a row, rounded down for times before 1970 as well.
const DAY: &str = "(created_at - ((created_at % 86400000) + 86400000) % 86400000) / 86400000";

/// The report, given the sums of usage. `lines` has every usage line of the sums.
pub(crate) async fn report(
    db: &mut dyn Executor,
    days: DayRange,
    mut sums: Sums,
    lines: &HashMap<i64, UsageLine>,
) -> Result<OperationsReport> {
    add_accounts(db, &mut sums).await?;
    add_entries(db, days, &mut sums).await?;
    add_payments(db, days, &mut sums).await?;
    let names = accounts::names(db, sums.top_accounts()).await?;
    Ok(sums.report(&names, lines)?)
}

async fn add_accounts(db: &mut dyn Executor, sums: &mut Sums) -> Result<()> {
    let sql = format!("SELECT {DAY}, count(*) FROM account GROUP BY 1");
    for row in db.query(&sql, &[]).await? {
        sums.add_accounts(row.get(0)?, row.get(1)?);
    }
    Ok(())
}

/// Entries without a payment are added up by day and kind; each payment's entries are needed for its plan.
async fn add_entries(db: &mut dyn Executor, days: DayRange, sums: &mut Sums) -> Result<()> {
    let sql = format!(
        "SELECT {DAY}, kind, tx_chain_id, tx_hash, {SUM} FROM ledger WHERE created_at >= ?1 AND created_at < ?2 \
         GROUP BY 1, kind, tx_chain_id, tx_hash"
    );
    let [from, until] = period(days);
    for row in db.query(&sql, &values![from, until]).await? {
        // The schema ensures that both are set or neither is.
        let tx = match (row.get(2)?, row.get::<Option<TxHash>>(3)?) {
            (Some(chain_id), Some(hash)) => Some(TxRef { chain_id, hash }),
            _ => None,
        };
        sums.add_entries(row.get(0)?, row.get(1)?, wide_sum(&row, 4)?, tx);
    }
    Ok(())
}

async fn add_payments(db: &mut dyn Executor, days: DayRange, sums: &mut Sums) -> Result<()> {
    let rest = "WHERE recorded_at >= ?1 AND recorded_at < ?2 AND settlement <> 'reversed' ORDER BY id";
    let [from, until] = period(days);
    let records: Vec<PaymentRecord> = list(db, rest, &values![from, until]).await?;
    let reversed = reversed_between(db, from, until).await?;
    for mut record in records {
        if let Some(reversals) = reversed.get(&record.payment.tx.hash) {
            let paid = record.payment.amount;
            let reversed = ProcessorReversal::amount_of(paid, reversals);
            record.payment.amount = TokenUnits::new(paid.get().saturating_sub(reversed.get()));
        }
        sums.add_payment(record);
    }
    Ok(())
}

/// The reversals of processors' payments that were recorded in a period and are still in force, by payment.
async fn reversed_between(
    db: &mut dyn Executor,
    from: Timestamp,
    until: Timestamp,
) -> Result<HashMap<TxHash, Vec<ProcessorReversal>>> {
    let rest = "WHERE restored_at IS NULL AND tx_hash IN ( \
         SELECT p.tx_hash FROM payment p WHERE p.processor IS NOT NULL AND p.recorded_at >= ?1 AND p.recorded_at < ?2)";
    let reversals: Vec<ProcessorReversal> = list(db, rest, &values![from, until]).await?;
    let mut of_payment: HashMap<TxHash, Vec<ProcessorReversal>> = HashMap::new();
    for reversal in reversals {
        of_payment.entry(reversal.payment).or_default().push(reversal);
    }
    Ok(of_payment)
}

/// From the first millisecond of the days to the first after them.
fn period(days: DayRange) -> [Timestamp; 2] {
    let after_last = Day::from_unix_days(days.last.unix_days().saturating_add(1));
    [days.first.start(), after_last.start()]
}
