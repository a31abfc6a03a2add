//! `metering admin usage`: the usage of one account, or the totals of all accounts.

use std::io::Write;

use clap::Args;
use metering_admin::Bounded;
use metering_admin::calls::accounts::{AccountDays, AccountUsage, OfAccount, ShowAccount};
use metering_admin::wire::{AccountUsageDocument, AllUsageDocument};
use metering_core::wire::UsageSummary;
use metering_core::{AccountId, Credits};

use super::failures::out_of_range;
use super::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::requests::with_model;
use crate::table::{Column, Table, table, write_pairs};

/// Show one account's usage by day, route and key, or the totals of all accounts.
#[derive(Debug, Args)]
#[command(after_help = "\
Days are UTC days. All parts of an account's report are from the same moment and add up exactly.

Examples:
  metering admin usage --days 7
  metering admin usage org_0123456789abcdefghij --days 90 --json
  metering admin usage --days 7 --server https://admin.example.com")]
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

const BY_ACCOUNT: &[Column] = &[
    Column::id("ACCOUNT"),
    Column::text("AGENT NAME").optional(2),
    Column::number("CALLS"),
    Column::amount("CREDITS USED"),
    Column::amount("CREDITS ADDED").optional(3),
    Column::amount("BALANCE").optional(1),
];

impl UsageArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let Some(org) = &self.org else {
            let accounts = administrator.usage_of_all(self.days).await?;
            let all = AllUsageDocument::new(self.days, accounts).ok_or_else(out_of_range)?;
            return if self.format.json { write_json(out, &all) } else { write_all(out, &all) };
        };
        let summary =
            administrator.get::<AccountUsage>(AccountDays { id: org.clone(), days: Bounded(self.days) }).await?;
        if self.format.json {
            return write_json(out, &summary);
        }
        let account = administrator.get::<ShowAccount>(OfAccount { id: org.clone() }).await?;
        write_summary(out, &account.agent_name, &summary)
    }
}

fn write_summary(out: &mut dyn Write, agent_name: &str, summary: &UsageSummary) -> Result<(), Failure> {
    write_pairs(
        out,
        &[
            ("Account", &summary.org_id),
            ("Agent name", &agent_name),
            ("Balance", &summary.credit_balance),
            ("Days", &summary.window_days),
            ("Calls", &summary.window.usage_events),
            ("Credits used", &summary.window.credits_used),
            ("Credits added", &summary.window.credits_added),
        ],
    )?;
    writeln!(out)?;
    table!(out, &summary.by_day, |day| {
        word("DAY") => day.day,
        number("CALLS") => day.usage_events,
        amount("CREDITS USED") => day.credits_used,
    })?;
    writeln!(out)?;
    table!(out, &summary.by_endpoint, |endpoint| {
        text("ROUTE") => with_model(&endpoint.route_template, endpoint.model.as_deref()),
        word("METHOD") => endpoint.http_method,
        number("CALLS") => endpoint.call_count,
        amount("CREDITS") => endpoint.credits_used,
    })?;
    // With a single key, the totals already show everything.
    if summary.by_key.len() < 2 {
        return Ok(());
    }
    writeln!(out)?;
    table!(out, &summary.by_key, |key| {
        id("KEY") => key.key_id,
        text("NAME") => key.key_name,
        number("CALLS") => key.call_count,
        amount("CREDITS") => key.credits_used,
    })
}

fn write_all(out: &mut dyn Write, all: &AllUsageDocument) -> Result<(), Failure> {
    let mut table = Table::new(BY_ACCOUNT);
    for AccountUsageDocument { org_id, agent_name, credit_balance, totals } in &all.accounts {
        let (calls, used, added) = (&totals.usage_events, &totals.credits_used, &totals.credits_added);
        table.row([org_id, agent_name, calls, used, added, credit_balance]);
    }
    let balances = Credits::checked_sum(all.accounts.iter().map(|account| account.credit_balance));
    let balances = balances.map_or_else(|| "out of range".to_owned(), |sum| sum.to_string());
    let totals = &all.totals;
    table.row([&"TOTAL", &"", &totals.usage_events, &totals.credits_used, &totals.credits_added, &balances]);
    table.write(out)
}
