//! `account list`: all accounts.

use std::io::Write;

use clap::Args;
use serde::Serialize;

use super::document::{AccountDocument, status};
use crate::admin::session::{Session, all_accounts};
use crate::failure::Failure;
use crate::output::{Format, json_line};
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
struct Document<'a> {
    accounts: Vec<AccountDocument<'a>>,
}

const COLUMNS: &[Column] = &[
    Column::Text("ORG_ID"),
    Column::Text("AGENT_NAME"),
    Column::Text("EMAIL"),
    Column::Number("BALANCE"),
    Column::Number("USED"),
    Column::Text("STATUS"),
    Column::Text("CREATED"),
];

impl ListArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let accounts = all_accounts(session.store().await?.as_ref()).await?;
        if self.format.json {
            return json_line(out, &Document { accounts: accounts.iter().map(AccountDocument::from).collect() });
        }
        let mut table = Table::new(COLUMNS);
        for account in &accounts {
            let email = account.email.as_ref().map_or("-", |email| email.as_str());
            let totals = &account.totals;
            table.row([
                &account.id,
                &account.agent_name,
                &email,
                &totals.balance,
                &totals.used,
                &status(account),
                &account.created_at,
            ]);
        }
        table.write(out)
    }
}
