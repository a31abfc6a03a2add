//! Reports on usage.

use metering_core::backend::{AccountDays, OperationsSums, UsageSums, route_calls};
use metering_core::charging::CountedRoute;
use metering_core::operators::OperationsReport;
use metering_core::usage::{DailyTotal, DayRange, UsageReport};
use metering_core::{AccountId, Day};

use crate::executor::{Executor, UsagePart};
use crate::fault::Result;
use crate::{accounts, ledger, operations, usage, usage_lines};

/// The usage report of an account.
pub async fn of_account(db: &mut dyn Executor, id: &AccountId, days: DayRange) -> Result<Option<UsageReport>> {
    let Some((row, account)) = accounts::by_id(db, id).await? else { return Ok(None) };
    let mut sums = UsageSums::default();
    for UsagePart { day, line, key, calls, atoms } in usage::of_account(db, row, days).await? {
        sums.add(day, line, key, calls, atoms);
    }
    let after_last = Day::from_unix_days(days.last.unix_days().saturating_add(1));
    let credits_added = ledger::added_between(db, row, days.first.start(), after_last.start()).await?;
    let lines = usage_lines::numbered(db, sums.lines().collect()).await?;
    Ok(Some(sums.report(account, credits_added, &lines)?))
}

/// The daily totals of an account in a range of days.
pub async fn days_of_account(db: &mut dyn Executor, id: &AccountId, days: DayRange) -> Result<Vec<DailyTotal>> {
    let Some((row, _)) = accounts::by_id(db, id).await? else { return Ok(Vec::new()) };
    let parts = usage::of_account(db, row, days).await?;
    let lines = usage_lines::numbered(db, parts.iter().map(|part| part.line).collect()).await?;
    let mut sums = AccountDays::default();
    for UsagePart { day, line, key, calls, atoms } in parts {
        sums.add(day, lines[&line].clone(), key, calls, atoms);
    }
    Ok(sums.totals(id)?)
}

/// How many requests all accounts made to each route in a range of days, most first.
pub async fn calls_by_route(db: &mut dyn Executor, days: DayRange) -> Result<Vec<(CountedRoute, u64)>> {
    let calls = usage::calls_by_line(db, days).await?;
    let lines = usage_lines::numbered(db, calls.iter().map(|(line, _)| *line).collect()).await?;
    Ok(route_calls(calls.into_iter().map(|(line, calls)| (CountedRoute::of(&lines[&line]), calls))))
}

/// The report about the business.
pub async fn of_operations(db: &mut dyn Executor, days: DayRange) -> Result<OperationsReport> {
    let mut sums = OperationsSums::new(days);
    usage::add_all(db, days, &mut sums).await?;
    let lines = usage_lines::numbered(db, sums.lines().collect()).await?;
    operations::report(db, days, sums, &lines).await
}
