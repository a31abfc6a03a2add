//! `webhooks resend`: sends a delivery again.

use std::io::Write;

use clap::Args;
use metering_client::calls::webhooks::{OfDelivery, ResendDelivery};
use metering_core::events::{DeliveryId, WebhookId};
use metering_core::wire::DeliveryResponse;

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::output::Format;
use crate::webhooks::delivery::{self, number};

/// Send a delivery again, regardless of its state.
#[derive(Debug, Args)]
#[command(after_help = "\
The event keeps its id, so a server that has handled it can skip it. Later events of the account wait for it.

Example:
  metering webhooks resend we_0123456789abcdef0123456789abcdef 42")]
pub(super) struct ResendArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    /// The number of the delivery.
    #[arg(value_name = "DELIVERY", value_parser = number)]
    delivery: DeliveryId,
    #[command(flatten)]
    format: Format,
}

impl ResendArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let of = OfDelivery { id: self.id.to_string(), delivery: self.delivery };
        let response = client.call::<ResendDelivery>(&of, &()).await?;
        let document: Document<DeliveryResponse> = Document::of(response)?;
        if self.format.json {
            return document.write_json(out);
        }
        delivery::write(out, delivery::RESENT, &document.content.data)
    }
}
