//! `webhooks show`: one webhook.

use std::io::Write;

use clap::Args;
use metering_client::calls::webhooks::{GetWebhook, OfWebhook};
use metering_core::events::WebhookId;
use metering_core::wire::WebhookResponse;

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::output::Format;
use crate::webhooks::document;

/// Show a webhook.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering webhooks show we_0123456789abcdef0123456789abcdef")]
pub(super) struct ShowArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    #[command(flatten)]
    format: Format,
}

impl ShowArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let of = OfWebhook { id: self.id.to_string() };
        let document: Document<WebhookResponse> = Document::of(client.call::<GetWebhook>(&of, &()).await?)?;
        if self.format.json { document.write_json(out) } else { document::write(out, "", &document.content.data) }
    }
}
