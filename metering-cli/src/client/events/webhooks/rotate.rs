//! `webhooks rotate`: replaces the secret of a webhook.

use std::io::Write;

use clap::Args;
use metering_client::calls::webhooks::{OfWebhook, RotateWebhook};
use metering_core::events::WebhookId;
use metering_core::wire::RotateWebhookRequest;

use super::issued;
use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::output::Format;

/// Replace the secret of a webhook, and print the new one. The secret is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
For a day, or as long as --grace says, requests are signed with both secrets, so that no event is lost while you replace
the secret on the server. If somebody else knows the old secret, use --grace 0.

Examples:
  metering webhooks rotate we_0123456789abcdef0123456789abcdef
  metering webhooks rotate we_0123456789abcdef0123456789abcdef --grace 0")]
pub(super) struct RotateArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    /// For how many more seconds requests are also signed with the old secret, at most a week [default: a day].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=604_800))]
    grace: Option<u32>,
    #[command(flatten)]
    format: Format,
}

impl RotateArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let rotation = RotateWebhookRequest { grace_seconds: self.grace };
        let client = self.profile.open()?.client()?;
        let response = client.call::<RotateWebhook>(&OfWebhook { id: self.id.to_string() }, &rotation).await;
        let response =
            response.map_err(|error| issued::unless_lost(error, "run the command again for another secret"))?;
        issued::write(&response, self.format.json, out)
    }
}
