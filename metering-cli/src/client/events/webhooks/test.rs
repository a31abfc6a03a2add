//! `webhooks test`: sends a test event.

use std::io::Write;

use clap::Args;
use metering_client::calls::webhooks::{OfWebhook, TestWebhook};
use metering_core::events::WebhookId;
use metering_core::wire::DeliveryResponse;

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::output::Format;

/// Send a test event to a webhook, even if it does not subscribe to that event.
#[derive(Debug, Args)]
#[command(after_help = "\
The service sends it after the deliveries that are pending. `metering webhooks deliveries` shows what the server
responded.

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
        let of = OfWebhook { id: self.id.to_string() };
        let document: Document<DeliveryResponse> = Document::of(client.call::<TestWebhook>(&of, &()).await?)?;
        if self.format.json {
            return document.write_json(out);
        }
        let (delivery, id) = (&document.content.data, self.id);
        writeln!(out, "Queued the test event as delivery {}. To see the result, run", delivery.id)?;
        Ok(writeln!(out, "  metering webhooks deliveries {id}")?)
    }
}
