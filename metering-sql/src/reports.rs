//! Reports on usage, which each backend reads in its own way.

use std::collections::HashMap;

use metering_core::backend::{AccountDays, OperationsSums, UsageSums};
use metering_core::operators::OperationsReport;
use metering_core::usage::{DailyTotal, DayRange, UsageReport};
use metering_core::{AccountId, ClientSource, Day, UsageLine};

use crate::executor::{Executor, UsagePart};
use crate::fault::{Result, corrupt};
use crate::{accounts, ledger, operations, values};

/// The usage report of an account.
pub async fn of_account(db: &mut dyn Executor, id: &AccountId, days: DayRange) -> Result<Option<UsageReport>> {
    let Some((row, account)) = accounts::by_id(db, id).await? else { return Ok(None) };
    let mut sums = UsageSums::default();
    for UsagePart { day, line, key, calls, atoms } in db.usage(row, days).await? {
        sums.add(day, line, key, calls, atoms);
    }
    let after_last = Day::from_unix_days(days.last.unix_days().saturating_add(1));
    let credits_added = ledger::added_between(db, row, days.first.start(), after_last.start()).await?;
    let lines = lines(db, sums.lines().collect()).await?;
    Ok(Some(sums.report(account, credits_added, &lines)?))
}

/// The daily totals of an account in a range of days.
pub async fn days_of_account(db: &mut dyn Executor, id: &AccountId, days: DayRange) -> Result<Vec<DailyTotal>> {
    let Some((row, _)) = accounts::by_id(db, id).await? else { return Ok(Vec::new()) };
    let parts = db.usage(row, days).await?;
    let lines = lines(db, parts.iter().map(|part| part.line).collect()).await?;
    let mut sums = AccountDays::default();
    for UsagePart { day, line, key, calls, atoms } in parts {
        sums.add(day, lines[&line].clone(), key, calls, atoms);
    }
    Ok(sums.totals(id)?)
}

/// The report about the business.
pub async fn of_operations(db: &mut dyn Executor, days: DayRange) -> Result<OperationsReport> {
    let mut sums = OperationsSums::new(days);
    db.add_usage(days, &mut sums).await?;
    let lines = lines(db, sums.lines().collect()).await?;
    operations::report(db, days, sums, &lines).await
}

/// The usage lines with these numbers.
async fn lines(db: &mut dyn Executor, mut numbers: Vec<i64>) -> Result<HashMap<i64, UsageLine>> {
    numbers.sort_unstable();
    numbers.dedup();
    let sql = "SELECT id, route_template, http_method, source FROM usage_line WHERE id {in ?1}";
    let mut lines = HashMap::new();
    for row in db.query(sql, &values![numbers]).await? {
        let (route, method): (String, String) = (row.get(1)?, row.get(2)?);
        let source = ClientSource::from_name(&row.get::<String>(3)?);
        let line = UsageLine { route_template: route.into(), http_method: method.into(), source };
        lines.insert(row.get(0)?, line);
    }
    match numbers.iter().find(|number| !lines.contains_key(*number)) {
        Some(missing) => Err(corrupt(format_args!("usage line {missing} is missing"))),
        None => Ok(lines),
    }
}
