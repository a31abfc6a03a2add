//! Writes the daily totals of accounts that are imported. Charges write them in each backend's own way.

use metering_core::usage::DailyTotal;

use crate::executor::Executor;
use crate::fault::Result;
use crate::table::Column::{Account, Own};
use crate::table::Table;
use crate::values;

const TABLE: Table = Table {
    name: "usage_daily",
    key: &["account", "day", "line", "key"],
    columns: &[Account("account"), Own("day"), Own("line"), Own("key"), Own("calls"), Own("amount")],
};

/// Inserts daily totals of accounts that had none, and returns how many. `lines` has the numbers of their usage lines.
pub async fn insert(db: &mut dyn Executor, totals: &[DailyTotal], lines: &[i64]) -> Result<u64> {
    let values = |(total, line): (&DailyTotal, &i64)| {
        let DailyTotal { account, day, line: _, key, calls, credits_used } = total;
        values![account, day, line, key, calls, credits_used]
    };
    db.execute(&TABLE.insert(), &totals.iter().zip(lines).map(values).collect::<Vec<_>>()).await
}
