//! `webhook remove`: removes the operator's own webhook.

use std::io::Write;

use clap::Args;
use metering_admin::calls::webhooks::RemoveWebhook;
use metering_admin::wire::ReasonRequest;

use crate::admin::session::Session;
use crate::failure::Failure;

/// Remove the operator's own webhook with its deliveries.
#[derive(Debug, Args)]
#[command(after_help = "\
First remove `webhooks.url` from the configuration of every server: a server that has it stores the webhook again when
it starts.

Example:
  metering admin webhook remove")]
pub(crate) struct RemoveArgs {}

impl RemoveArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        session.administrator().await?.call::<RemoveWebhook>((), ReasonRequest::default()).await?;
        Ok(writeln!(out, "The operator's webhook was removed.")?)
    }
}
