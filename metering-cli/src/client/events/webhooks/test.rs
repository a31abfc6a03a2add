//! `webhooks test`: sends a test event.

use std::io::Write;

use clap::Args;
use metering_core::events::WebhookId;
use metering_core::wire::DeliveryResponse;

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::output::Format;

/// Send a test event to a webhook, whatever events it asks for.
#[derive(Debug, Args)]
#[command(after_help = "\
The service sends it soon. `metering webhooks deliveries` shows what the server responded.

Example:
  metering webhooks test we_0123456789abcdef0123456789abcdef")]
pub(super) struct TestArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    #[command(flatten)]
    format: Format,
}

impl TestArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let document: Document<DeliveryResponse> = Document::of(client.test_webhook(&self.id).await?)?;
        if self.format.json {
            return document.write_json(out);
        }
        let (delivery, id) = (&document.content.data, self.id);
        writeln!(out, "The test event is on its way, as delivery {}. To see what became of it, run", delivery.id)?;
        Ok(writeln!(out, "  metering webhooks deliveries {id}")?)
    }
}
