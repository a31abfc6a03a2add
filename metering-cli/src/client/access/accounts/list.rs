//! `accounts list` and `accounts usage`.

use std::io::Write;

use clap::Args;
use metering_client::calls::child_accounts::{ChildrenDays, ChildrenPage, GetChildrenUsage, ListChildAccounts};
use metering_core::store::Cursor;
use metering_core::wire::call::Bounded;

use crate::client::session::options::CallOptions;
use crate::commands::up_to;
use crate::failure::Failure;
use crate::output::notice;
use crate::table::table;

/// List child accounts with their balances, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering accounts list
  metering accounts list --json")]
pub(super) struct ListArgs {
    /// Continue after this cursor: the value of `next` in the previous JSON output.
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
    #[command(flatten)]
    options: CallOptions,
}

impl ListArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let page = ChildrenPage { limit: Bounded::MAX, after: self.after.map(Cursor::new) };
        self.options
            .call::<ListChildAccounts>(&page, &(), out, |accounts, out| {
                if accounts.data.is_empty() {
                    return Ok(writeln!(out, "No child accounts. Create one with `metering accounts create`.")?);
                }
                table!(out, &accounts.data, |child| {
                    id("ACCOUNT") => child.org_id,
                    word("NAME") => child.agent_name,
                    amount("BALANCE") => child.credit_balance,
                    amount("USED").optional(1) => child.total_credits_used,
                    time("CREATED").optional(2) => child.created_at,
                    word("STATE") => if child.closed_at.is_some() { "closed" } else { "open" },
                })?;
                out.flush()?;
                if let Some(next) = &accounts.next {
                    notice(&format!("There are more: --after {next}"));
                }
                Ok(())
            })
            .await
    }
}

/// Show the usage of every child account.
#[derive(Debug, Args)]
#[command(after_help = "\
--json also has what all of them used on each day.

Examples:
  metering accounts usage
  metering accounts usage --days 7 --json")]
pub(super) struct UsageArgs {
    /// How many days, including today: 1 to 90.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = up_to(90))]
    days: u32,
    #[command(flatten)]
    options: CallOptions,
}

impl UsageArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let days = ChildrenDays { days: Bounded(self.days) };
        self.options
            .call::<GetChildrenUsage>(&days, &(), out, |usage, out| {
                if usage.data.is_empty() {
                    return Ok(writeln!(out, "No child account used anything in the last {} days.", self.days)?);
                }
                table!(out, &usage.data, |used| {
                    id("ACCOUNT") => used.org_id,
                    number("REQUESTS") => used.usage_events,
                    amount("CREDITS") => used.credits_used,
                })
            })
            .await
    }
}
