//! `webhooks list`: the account's webhooks.

use std::io::Write;

use clap::Args;
use metering_client::calls::webhooks::ListWebhooks;
use metering_core::wire::WebhooksDocument;

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::output::Format;
use crate::webhooks::document;

/// List the account's webhooks, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering webhooks list
  metering webhooks list --json")]
pub(super) struct ListArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    format: Format,
}

impl ListArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let document: Document<WebhooksDocument> = Document::of(client.call::<ListWebhooks>(&(), &()).await?)?;
        if self.format.json { document.write_json(out) } else { document::write_list(out, &document.content.data) }
    }
}
