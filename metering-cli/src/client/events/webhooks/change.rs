//! `webhooks set`: changes a webhook.

use std::io::Write;

use clap::Args;
use metering_client::calls::webhooks::{ChangeWebhook, OfWebhook};
use metering_core::events::{EventKind, WebhookId};
use metering_core::wire::{ChangeWebhookRequest, WebhookResponse};

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::output::Format;
use crate::webhooks::document;

/// Subscribes to all events.
const ALL: &str = "all";

/// Change a webhook. Options that you omit change nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Events that happen while a webhook is disabled are never sent to it. After a response of 410 Gone, switch the webhook on
again with --enable.

Examples:
  metering webhooks set we_0123456789abcdef0123456789abcdef --to https://hooks.example.com/v2 --events all
  metering webhooks set we_0123456789abcdef0123456789abcdef --disable")]
pub(super) struct SetArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    #[command(flatten)]
    change: Change,
    #[command(flatten)]
    format: Format,
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
        // A list with `all` in it is all of them.
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
        let client = self.profile.open()?.client()?;
        let response =
            client.call::<ChangeWebhook>(&OfWebhook { id: self.id.to_string() }, &self.change.request()).await?;
        let document: Document<WebhookResponse> = Document::of(response)?;
        if self.format.json {
            return document.write_json(out);
        }
        document::write(out, "The webhook was changed.", &document.content.data)
    }
}
