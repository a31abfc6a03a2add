//! `webhooks delete`: deletes a webhook.

use std::io::Write;

use clap::Args;
use metering_client::calls::webhooks::{DeleteWebhook, GetWebhook, OfWebhook};
use metering_core::events::WebhookId;
use metering_core::wire::{DeletedWebhookResponse, WebhookResponse};

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::Format;

/// Delete a webhook, and the list of its deliveries.
#[derive(Debug, Args)]
#[command(after_help = "\
Asks for confirmation, unless --yes is given. To stop a webhook for a while, use `metering webhooks set ID --disable`.

Example:
  metering webhooks delete we_0123456789abcdef0123456789abcdef --yes")]
pub(super) struct DeleteArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

impl DeleteArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let of = OfWebhook { id: self.id.to_string() };
        if !self.yes {
            let WebhookResponse { data } = client.call::<GetWebhook>(&of, &()).await?.json()?;
            confirm(&format!("Permanently delete webhook {} to {}?", data.id, data.url)).await?;
        }
        let deleted = client.call::<DeleteWebhook>(&of, &()).await?;
        let document: Document<DeletedWebhookResponse> = Document::of(deleted)?;
        if self.format.json {
            return document.write_json(out);
        }
        Ok(writeln!(out, "The webhook is deleted.")?)
    }
}
