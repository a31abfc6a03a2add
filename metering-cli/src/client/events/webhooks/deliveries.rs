//! `webhooks deliveries`: what was sent to a webhook.

use std::io::Write;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use metering_client::calls::webhooks::{DeliveriesPage, ListDeliveries};
use metering_core::events::{DeliveryState, WebhookId};
use metering_core::store::Cursor;
use metering_core::wire::DeliveriesDocument;
use metering_core::wire::call::Bounded;

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::output::{Format, notice};
use crate::webhooks::delivery::{self, state};

/// Show what was sent to a webhook, newest first, and what it responded.
#[derive(Debug, Args)]
#[command(after_help = "\
Deliveries are kept for 30 days. One that fails for three days is parked: no more retries, unless you run
`metering webhooks resend`.

Examples:
  metering webhooks deliveries we_0123456789abcdef0123456789abcdef
  metering webhooks deliveries we_0123456789abcdef0123456789abcdef --state parked --json")]
pub(super) struct DeliveriesArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    /// Only those in this state: pending, delivered or parked.
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<DeliveryState>,
    /// How many deliveries to show: 1 to 100.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=100)
    )]
    limit: u32,
    /// Show the deliveries that follow; the value of `next` in the previous JSON output.
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
    #[command(flatten)]
    format: Format,
}

impl DeliveriesArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let page = DeliveriesPage {
            id: self.id.to_string(),
            state: self.state.map(|state| state.as_str().to_owned()),
            event: None,
            limit: Bounded(self.limit),
            after: self.after.map(Cursor::new),
        };
        let response = client.call::<ListDeliveries>(&page, &()).await?;
        let document: Document<DeliveriesDocument> = Document::of(response)?;
        if self.format.json {
            return document.write_json(out);
        }
        delivery::write_list(out, &document.content.data)?;
        out.flush()?;
        if document.content.next.is_some() {
            notice(&format!("These are the newest {}; there are more.", document.content.data.len()));
        }
        Ok(())
    }
}
