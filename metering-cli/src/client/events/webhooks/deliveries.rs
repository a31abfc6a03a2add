//! Commands about deliveries: listing them, sending a test event, and resending one.

use std::io::Write;

use clap::Args;
use metering_client::calls::webhooks::{
    DeliveriesPage, ListDeliveries, OfDelivery, OfWebhook, ResendDelivery, TestWebhook,
};
use metering_core::events::{DeliveryId, DeliveryState, WebhookId};
use metering_core::store::Cursor;
use metering_core::wire::call::Bounded;

use crate::client::session::options::CallOptions;
use crate::commands::up_to;
use crate::failure::Failure;
use crate::output::newest;
use crate::webhooks::delivery::{self, number, state};

/// Show the deliveries to a webhook, newest first, with its responses.
#[derive(Debug, Args)]
#[command(after_help = "\
Deliveries are kept for 30 days. One that fails for three days is parked: no more retries, unless you run
`metering webhooks resend`.

Examples:
  metering webhooks deliveries we_0123456789abcdef0123456789abcdef
  metering webhooks deliveries we_0123456789abcdef0123456789abcdef --state parked --json")]
pub(super) struct DeliveriesArgs {
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    /// Only those in this state: pending, delivered or parked.
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<DeliveryState>,
    /// How many deliveries to show: 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = up_to(100))]
    limit: u32,
    /// Continue after this cursor: the value of `next` in the previous JSON output.
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
    #[command(flatten)]
    options: CallOptions,
}

impl DeliveriesArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let page = DeliveriesPage {
            id: self.id.to_string(),
            state: self.state.map(|state| state.as_str().to_owned()),
            event: None,
            limit: Bounded(self.limit),
            after: self.after.map(Cursor::new),
        };
        self.options
            .call::<ListDeliveries>(&page, &(), out, |deliveries, out| {
                delivery::write_list(out, &deliveries.data)?;
                newest(out, deliveries.data.len(), deliveries.next.as_ref())
            })
            .await
    }
}

/// Send a test event to a webhook, even if it does not subscribe to that event.
#[derive(Debug, Args)]
#[command(after_help = "\
The service sends it after the deliveries that are pending. `metering webhooks deliveries` shows what the server
responded.

Example:
  metering webhooks test we_0123456789abcdef0123456789abcdef")]
pub(super) struct TestArgs {
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    #[command(flatten)]
    options: CallOptions,
}

impl TestArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let of = OfWebhook { id: self.id.to_string() };
        self.options
            .call::<TestWebhook>(&of, &(), out, |queued, out| {
                writeln!(out, "Queued the test event as delivery {}. To see the result, run", queued.data.id)?;
                Ok(writeln!(out, "  metering webhooks deliveries {}", self.id)?)
            })
            .await
    }
}

/// Send a delivery again, regardless of its state.
#[derive(Debug, Args)]
#[command(after_help = "\
The event keeps its id, so a server that has handled it can skip it. Later events of the account wait for it.

Example:
  metering webhooks resend we_0123456789abcdef0123456789abcdef 42")]
pub(super) struct ResendArgs {
    /// The webhook's id.
    #[arg(value_name = "ID")]
    id: WebhookId,
    /// The number of the delivery.
    #[arg(value_name = "DELIVERY", value_parser = number)]
    delivery: DeliveryId,
    #[command(flatten)]
    options: CallOptions,
}

impl ResendArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let of = OfDelivery { id: self.id.to_string(), delivery: self.delivery };
        self.options
            .call::<ResendDelivery>(&of, &(), out, |queued, out| delivery::write(out, delivery::RESENT, &queued.data))
            .await
    }
}
