//! `webhook list`: the operator's own webhook, or those of an account.

use std::io::Write;

use clap::Args;
use metering_admin::calls::webhooks::{ListWebhooks, WebhooksOf};
use metering_core::AccountId;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::webhooks::document;

/// List the operator's own webhook, which is in the server's configuration, or those of an account.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering admin webhook list
  metering admin webhook list --account org_0123456789abcdefghij --json")]
pub(crate) struct ListArgs {
    /// The account's id; without it, the operator's own webhook.
    #[arg(long, value_name = "ORG")]
    account: Option<AccountId>,
    #[command(flatten)]
    format: Format,
}

impl ListArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let webhooks = session.administrator().await?.get::<ListWebhooks>(WebhooksOf { account: self.account }).await?;
        if self.format.json { write_json(out, &webhooks) } else { document::write_list(out, &webhooks.data) }
    }
}
