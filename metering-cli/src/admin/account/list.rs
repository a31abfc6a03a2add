//! `account list`: all accounts.

use std::io::Write;

use clap::Args;
use metering_admin::wire::AccountDocument;
use serde::Serialize;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::{Column, Table};

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

const COLUMNS: &[Column] = &[
    Column::id("ACCOUNT"),
    Column::text("AGENT NAME"),
    Column::text("EMAIL").optional(3),
    Column::amount("BALANCE"),
    Column::amount("HELD").optional(5),
    Column::amount("USED").optional(2),
    Column::state("STATUS").optional(1),
    Column::time("CREATED").optional(4),
];

impl ListArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let accounts = session.administrator().await?.accounts().await?;
        if self.format.json {
            return write_json(out, &Document { accounts });
        }
        let mut table = Table::new(COLUMNS);
        for account in &accounts {
            table.row([
                &account.org_id,
                &account.agent_name,
                &account.email.as_deref().unwrap_or("-"),
                &account.credit_balance,
                &account.credits_held,
                &account.total_credits_used,
                &account.status,
                &account.created_at,
            ]);
        }
        table.write(out)
    }
}
