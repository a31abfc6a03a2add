//! `metering admin usage`: the usage of one account, or the totals of all accounts.

mod document;

use std::io::Write;

use clap::Args;
use metering_core::usage::{DayRange, UsageReport};
use metering_core::{AccountId, Credits, Store};

use self::document::{AccountUsage, AllUsage, ReportDocument, Totals};
use super::session::{PAGE, Session, no_account};
use crate::failure::Failure;
use crate::output::{Format, json_line};
use crate::table::{Column, Table, write_pairs};

/// Show one account's usage by day and route, or the totals of all accounts.
#[derive(Debug, Args)]
#[command(after_help = "\
Days are UTC days. All parts of an account's report are from the same moment and add up exactly.

Examples:
  metering admin usage --days 7
  metering admin usage org_0123456789abcdefghij --days 90 --json")]
pub(crate) struct UsageArgs {
    /// The account's id; without it, the totals of every account.
    #[arg(value_name = "ORG")]
    org: Option<AccountId>,
    /// How many days to show, including today.
    #[arg(long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    #[command(flatten)]
    format: Format,
}

const BY_DAY: &[Column] = &[Column::Text("DAY"), Column::Number("CALLS"), Column::Number("CREDITS_USED")];
const BY_ENDPOINT: &[Column] =
    &[Column::Text("ROUTE"), Column::Text("METHOD"), Column::Number("CALLS"), Column::Number("CREDITS")];
const BY_ACCOUNT: &[Column] = &[
    Column::Text("ORG_ID"),
    Column::Text("AGENT_NAME"),
    Column::Number("CALLS"),
    Column::Number("CREDITS_USED"),
    Column::Number("CREDITS_ADDED"),
    Column::Number("BALANCE"),
];

impl UsageArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let store = session.store().await?;
        let days = DayRange::last_days(session.now(), self.days);
        match &self.org {
            Some(org) => {
                let report = report(store.as_ref(), org, days).await?;
                self.write_report(out, &report)
            }
            None => {
                let accounts = usage_of_all(store.as_ref(), days).await?;
                self.write_all(out, accounts)
            }
        }
    }

    fn write_report(&self, out: &mut dyn Write, report: &UsageReport) -> Result<(), Failure> {
        let totals = Totals::of(report)?;
        if self.format.json {
            return json_line(out, &ReportDocument::new(report, self.days, totals));
        }
        let account = &report.account;
        write_pairs(
            out,
            &[
                ("Account", &account.id),
                ("Agent name", &account.agent_name),
                ("Balance", &account.totals.balance),
                ("Days", &self.days),
                ("Calls", &totals.usage_events),
                ("Credits used", &totals.credits_used),
                ("Credits added", &totals.credits_added),
            ],
        )?;
        let mut days = Table::new(BY_DAY);
        for day in &report.by_day {
            days.row([&day.day, &day.usage_events, &day.credits_used]);
        }
        let mut endpoints = Table::new(BY_ENDPOINT);
        for endpoint in &report.by_endpoint {
            endpoints.row([
                &endpoint.route_template,
                &endpoint.http_method,
                &endpoint.call_count,
                &endpoint.credits_used,
            ]);
        }
        writeln!(out)?;
        days.write(out)?;
        writeln!(out)?;
        endpoints.write(out)
    }

    fn write_all(&self, out: &mut dyn Write, accounts: Vec<AccountUsage>) -> Result<(), Failure> {
        let totals = Totals::sum(accounts.iter().map(|account| account.totals))?;
        if self.format.json {
            return json_line(out, &AllUsage { window_days: self.days, totals, accounts });
        }
        let mut table = Table::new(BY_ACCOUNT);
        for AccountUsage { org_id, agent_name, credit_balance, totals } in &accounts {
            let Totals { usage_events, credits_used, credits_added } = totals;
            table.row([org_id, agent_name, usage_events, credits_used, credits_added, credit_balance]);
        }
        let balances = Credits::checked_sum(accounts.iter().map(|account| account.credit_balance));
        let balances = balances.map_or_else(|| "out of range".to_owned(), |sum| sum.to_string());
        table.row([&"TOTAL", &"", &totals.usage_events, &totals.credits_used, &totals.credits_added, &balances]);
        table.write(out)
    }
}

async fn report(store: &dyn Store, org: &AccountId, days: DayRange) -> Result<UsageReport, Failure> {
    let report = store.usage_report(org, days).await?;
    report.ok_or_else(|| no_account(org))
}

/// One report per account, so that the cost depends on the requested days only; the daily totals would need the whole
/// history.
async fn usage_of_all(store: &dyn Store, days: DayRange) -> Result<Vec<AccountUsage>, Failure> {
    let mut accounts = Vec::new();
    let mut after = None;
    loop {
        let page = store.accounts(after.as_ref(), PAGE).await?;
        for account in page.items {
            let report = report(store, &account.id, days).await?;
            let totals = Totals::of(&report)?;
            let account = report.account;
            accounts.push(AccountUsage {
                org_id: account.id,
                agent_name: account.agent_name,
                credit_balance: account.totals.balance,
                totals,
            });
        }
        if page.next.is_none() {
            return Ok(accounts);
        }
        after = page.next;
    }
}
