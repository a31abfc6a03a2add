//! The report about the business.
//!
//! The database adds up what is in tables; usage that is still in tails is added here, row by row. The statements must
//! run on one snapshot.

use std::collections::HashMap;

use metering_core::access::AgentName;
use metering_core::backend::OperationsSums;
use metering_core::operators::OperationsReport;
use metering_core::payments::PaymentRecord;
use metering_core::usage::DayRange;
use metering_core::{AccountId, Day};
use metering_sql::Record;

use crate::charging::known::Known;
use crate::charging::tail::Tail;
use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::money::sum::{SUM, wide_sum};
use crate::rows::{all, each, optional_tx, parsed, unsigned};
use crate::script::record;
use crate::usage::activity::ledger_kind;

/// By row numbers of accounts and usage lines.
type Sums = OperationsSums<i64, i64>;

/// The UTC day of a column, rounded down for times before 1970 as well.
const DAY: &str = "(created_at - ((created_at % 86400000) + 86400000) % 86400000) / 86400000";

pub(crate) async fn report<C: GenericClient>(client: &C, known: &Known, days: DayRange) -> Result<OperationsReport> {
    let mut sums = Sums::new(days);
    accounts(client, &mut sums).await?;
    daily_totals(client, days, &mut sums).await?;
    tails(client, days, &mut sums).await?;
    ledger(client, days, &mut sums).await?;
    payments(client, days, &mut sums).await?;
    let names = names(client, &sums.top_accounts()).await?;
    let mut lines = HashMap::new();
    for line in sums.lines() {
        lines.insert(line, known.line(client, line).await?);
    }
    Ok(sums.report(&names, &lines)?)
}

async fn accounts<C: GenericClient>(client: &C, sums: &mut Sums) -> Result<()> {
    let sql = format!("SELECT {DAY}, count(*) FROM account GROUP BY 1");
    for row in all(client, &sql, &[]).await? {
        sums.add_accounts(Day::from_unix_days(row.try_get(0)?), unsigned(&row, 1)?);
    }
    Ok(())
}

/// In each row, one of the first three columns is set: what its sum is for.
async fn daily_totals<C: GenericClient>(client: &C, days: DayRange, sums: &mut Sums) -> Result<()> {
    let sql = format!(
        "SELECT day, line, account, sum(calls)::BIGINT, {SUM} FROM usage_daily WHERE day BETWEEN $1 AND $2 \
         GROUP BY GROUPING SETS ((day), (line), (account))"
    );
    each(client, &sql, &[&days.first.unix_days(), &days.last.unix_days()], |row| {
        let (calls, atoms) = (unsigned(row, 3)?, wide_sum(row, 4)?);
        match (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?) {
            (Some(day), None, None) => sums.add_usage_of_day(Day::from_unix_days(day), calls, atoms),
            (None, Some(line), None) => sums.add_usage_of_line(line, calls, atoms),
            (None, None, Some(account)) => sums.add_usage_of_account(account, calls, atoms),
            _ => return Err(corrupt("a daily total has no day, line or account")),
        }
        Ok(())
    })
    .await
}

/// Usage that is not folded yet.
async fn tails<C: GenericClient>(client: &C, days: DayRange, sums: &mut Sums) -> Result<()> {
    let sql = "SELECT account, tail_day, tail FROM meter WHERE tail_day BETWEEN $1 AND $2 AND tail <> ''";
    each(client, sql, &[&days.first.unix_days(), &days.last.unix_days()], |row| {
        let (account, tail) = (row.try_get(0)?, Tail::of_row(row, 1)?);
        let Some(day) = tail.day.map(Day::from_unix_days) else { return Ok(()) };
        for ((line, _), (calls, atoms)) in tail.totals()? {
            sums.add_usage(day, account, line, calls, atoms);
        }
        Ok(())
    })
    .await
}

/// Entries without a payment are added up by day and kind; each payment's entries are needed for its plan.
async fn ledger<C: GenericClient>(client: &C, days: DayRange, sums: &mut Sums) -> Result<()> {
    let sql = format!(
        "SELECT {DAY}, kind, {SUM}, tx_chain_id, tx_hash FROM ledger WHERE created_at >= $1 AND created_at < $2 \
         GROUP BY 1, kind, tx_chain_id, tx_hash"
    );
    let [from, until] = period(days);
    each(client, &sql, &[&from, &until], |row| {
        let (day, kind) = (Day::from_unix_days(row.try_get(0)?), ledger_kind(row.try_get(1)?)?);
        sums.add_entries(day, kind, wide_sum(row, 2)?, optional_tx(row, 3)?);
        Ok(())
    })
    .await
}

async fn payments<C: GenericClient>(client: &C, days: DayRange, sums: &mut Sums) -> Result<()> {
    let rest = "WHERE recorded_at >= $1 AND recorded_at < $2 AND settlement <> 'reversed' ORDER BY id";
    let sql = format!("{} {rest}", PaymentRecord::TABLE.select());
    let [from, until] = period(days);
    each(client, &sql, &[&from, &until], |row| {
        sums.add_payment(record(row)?);
        Ok(())
    })
    .await
}

/// From the first millisecond of the days to the first after them.
fn period(days: DayRange) -> [i64; 2] {
    let after_last = Day::from_unix_days(days.last.unix_days().saturating_add(1));
    [days.first.start().unix_millis(), after_last.start().unix_millis()]
}

async fn names<C: GenericClient>(client: &C, accounts: &[i64]) -> Result<HashMap<i64, (AccountId, AgentName)>> {
    let sql = "SELECT id, org_id, agent_name FROM account WHERE id = ANY($1)";
    let rows = all(client, sql, &[&accounts]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, (parsed(row, 1)?, parsed(row, 2)?)))).collect()
}
