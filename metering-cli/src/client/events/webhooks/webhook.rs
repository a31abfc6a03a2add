//! Commands about webhooks themselves: list, create, show, set, rotate and delete.

use std::io::Write;

use clap::Args;
use metering_client::calls::webhooks::{
    ChangeWebhook, CreateWebhook, DeleteWebhook, GetWebhook, ListWebhooks, OfWebhook, RotateWebhook,
};
use metering_core::events::{EventKind, WebhookId};
use metering_core::wire::{
    ChangeWebhookRequest, CreateWebhookRequest, DeletedWebhookResponse, RotateWebhookRequest, WebhookResponse,
};

use super::issued;
use crate::client::session::options::CallOptions;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::webhooks::document;

/// Subscribes to all events.
const ALL: &str = "all";

/// List the account's webhooks, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering webhooks list
  metering webhooks list --json")]
pub(super) struct ListArgs {
    #[command(flatten)]
    options: CallOptions,
}

impl ListArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let options = self.options;
        options.call::<ListWebhooks>(&(), &(), out, |found, out| document::write_list(out, &found.data)).await
    }
}

/// Create a webhook, and print its signing secret. The secret is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
The URL must be https, and its host must be reachable from the internet.

Examples:
  metering webhooks create https://hooks.example.com/metering
  metering webhooks create https://hooks.example.com/metering --events balance.low,payment.credited")]
pub(super) struct CreateArgs {
    /// Where events are sent.
    #[arg(value_name = "URL")]
    to: String,
    /// The events to send, separated by commas [default: all, including those that later versions add].
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    events: Vec<EventKind>,
    #[command(flatten)]
    options: CallOptions,
}

impl CreateArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let events: Vec<_> = self.events.iter().map(ToString::to_string).collect();
        let request =
            CreateWebhookRequest { url: Some(self.to), events: Some(events).filter(|events| !events.is_empty()) };
        let client = self.options.client()?;
        let response = client.call::<CreateWebhook>(&(), &request).await.map_err(|error| {
            issued::unless_lost(
                error,
                "see whether `metering webhooks list` has it, and get a secret with `metering webhooks rotate`",
            )
        })?;
        issued::write(&response, self.options.json(), out)
    }
}

/// Show a webhook.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering webhooks show we_0123456789abcdef0123456789abcdef")]
pub(super) struct ShowArgs {
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    #[command(flatten)]
    options: CallOptions,
}

impl ShowArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let Self { id, options } = self;
        options.call::<GetWebhook>(&of(id), &(), out, |found, out| document::write(out, "", &found.data)).await
    }
}

/// Change a webhook. Options that you omit change nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Events that happen while a webhook is disabled are never sent to it. After a response of 410 Gone, switch the webhook on
again with --enable.

Examples:
  metering webhooks set we_0123456789abcdef0123456789abcdef --to https://hooks.example.com/v2 --events all
  metering webhooks set we_0123456789abcdef0123456789abcdef --disable")]
pub(super) struct SetArgs {
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    #[command(flatten)]
    change: Change,
    #[command(flatten)]
    options: CallOptions,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Change {
    /// Where events are sent. (--url is the service's URL.)
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// The events to send, separated by commas, or `all`.
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', value_parser = kind)]
    events: Option<Vec<Kind>>,
    /// Switch it off.
    #[arg(long, conflicts_with = "enable")]
    disable: bool,
    /// Switch it on again.
    #[arg(long)]
    enable: bool,
}

/// A kind of event; `None` for all of them.
type Kind = Option<EventKind>;

fn kind(text: &str) -> Result<Kind, String> {
    if text == ALL {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error| format!("{error}, or {ALL}"))
}

impl Change {
    fn request(self) -> ChangeWebhookRequest {
        // A list that contains `all` means all of them.
        let events = self.events.map(|kinds| {
            let named: Option<Vec<EventKind>> = kinds.into_iter().collect();
            named.map(|kinds| kinds.iter().map(ToString::to_string).collect())
        });
        let disabled = (self.disable || self.enable).then_some(self.disable);
        ChangeWebhookRequest { url: self.to, events, disabled }
    }
}

impl SetArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let response = self.options.client()?.call::<ChangeWebhook>(&of(self.id), &self.change.request()).await?;
        self.options.print::<WebhookResponse>(response, out, |changed, out| {
            document::write(out, "The webhook was changed.", &changed.data)
        })
    }
}

/// Replace the secret of a webhook, and print the new one. The secret is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
For a day, or as long as --grace says, requests are signed with both secrets, so that no event is lost while you replace
the secret on the server. If someone else knows the old secret, use --grace 0.

Examples:
  metering webhooks rotate we_0123456789abcdef0123456789abcdef
  metering webhooks rotate we_0123456789abcdef0123456789abcdef --grace 0")]
pub(super) struct RotateArgs {
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    /// How many more seconds to sign requests with the old secret too, at most a week [default: a day].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=604_800))]
    grace: Option<u32>,
    #[command(flatten)]
    options: CallOptions,
}

impl RotateArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let rotation = RotateWebhookRequest { grace_seconds: self.grace };
        let response = self.options.client()?.call::<RotateWebhook>(&of(self.id), &rotation).await;
        let response =
            response.map_err(|error| issued::unless_lost(error, "run the command again for another secret"))?;
        issued::write(&response, self.options.json(), out)
    }
}

/// Delete a webhook, and the list of its deliveries.
#[derive(Debug, Args)]
#[command(after_help = "\
Asks for confirmation, unless --yes is given. To stop a webhook for a while, use `metering webhooks set ID --disable`.

Example:
  metering webhooks delete we_0123456789abcdef0123456789abcdef --yes")]
pub(super) struct DeleteArgs {
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    options: CallOptions,
}

impl DeleteArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let (client, of) = (self.options.client()?, of(self.id));
        if !self.yes {
            let WebhookResponse { data } = client.call::<GetWebhook>(&of, &()).await?.json()?;
            confirm(&format!("Permanently delete webhook {} to {}?", data.id, data.url)).await?;
        }
        let deleted = client.call::<DeleteWebhook>(&of, &()).await?;
        self.options
            .print::<DeletedWebhookResponse>(deleted, out, |_, out| Ok(writeln!(out, "The webhook is deleted.")?))
    }
}

fn of(id: WebhookId) -> OfWebhook {
    OfWebhook { id: id.to_string() }
}
