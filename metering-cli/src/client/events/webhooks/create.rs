//! `webhooks create`: creates a webhook.

use std::io::Write;

use clap::Args;
use metering_client::calls::webhooks::CreateWebhook;
use metering_core::events::EventKind;
use metering_core::wire::CreateWebhookRequest;

use super::issued;
use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::output::Format;

/// Create a webhook, and print the secret that its requests are signed with. The secret is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
The URL must be https, and its host must be reachable from the internet.

Examples:
  metering webhooks create https://hooks.example.com/metering
  metering webhooks create https://hooks.example.com/metering --events balance.low,payment.credited")]
pub(super) struct CreateArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Where events are sent.
    #[arg(value_name = "URL")]
    to: String,
    /// The events to send, separated by commas [default: all, including those that later versions add].
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    events: Vec<EventKind>,
    #[command(flatten)]
    format: Format,
}

impl CreateArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let events: Vec<_> = self.events.iter().map(ToString::to_string).collect();
        let request =
            CreateWebhookRequest { url: Some(self.to), events: Some(events).filter(|events| !events.is_empty()) };
        let client = self.profile.open()?.client()?;
        let response = client.call::<CreateWebhook>(&(), &request).await.map_err(|error| {
            issued::unless_lost(
                error,
                "see whether `metering webhooks list` has it, and get a secret with `metering webhooks rotate`",
            )
        })?;
        issued::write(&response, self.format.json, out)
    }
}
