//! `account list`: all accounts.

use std::io::Write;

use clap::Args;
use metering_admin::wire::AccountDocument;
use serde::Serialize;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::table;

/// List all accounts, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Holds the whole list in memory; `metering admin export accounts` does not.

Examples:
  metering admin account list
  metering admin account list --json")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document {
    accounts: Vec<AccountDocument>,
}

impl ListArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let accounts = session.administrator().await?.accounts().await?;
        if self.format.json {
            return write_json(out, &Document { accounts });
        }
        table!(out, &accounts, |account| {
            id("ACCOUNT") => account.org_id,
            text("AGENT NAME") => account.agent_name,
            text("EMAIL").optional(3) => account.email.as_deref().unwrap_or("-"),
            amount("BALANCE") => account.credit_balance,
            amount("HELD").optional(5) => account.credits_held,
            amount("USED").optional(2) => account.total_credits_used,
            state("STATUS").optional(1) => account.status,
            time("CREATED").optional(4) => account.created_at,
        })
    }
}
