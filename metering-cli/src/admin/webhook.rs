//! `metering admin webhook`: the webhooks of the operator and of accounts, and their deliveries.

mod deliveries;
mod list;

use std::io::Write;

use clap::Args;
use metering_admin::calls::webhooks::{OfDelivery, RemoveWebhook, ResendDelivery, TestWebhook};
use metering_core::events::DeliveryId;

use super::session::Session;
use crate::commands::commands;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::webhooks::delivery::{self, number};

commands! {
    /// List webhooks and their deliveries, and send parked deliveries again.
    #[command(after_help = "\
Examples:
  metering admin webhook deliveries --state parked
  metering admin webhook resend 42")]
    WebhookArgs with session {
        List(list::ListArgs),
        Deliveries(deliveries::DeliveriesArgs),
        Resend(ResendArgs),
        Test(TestArgs),
        Remove(RemoveArgs),
    }
}

/// Send a delivery of any account again, regardless of its state.
#[derive(Debug, Args)]
#[command(after_help = "\
A running server sends it. The event keeps its id, so a receiver that has handled it can skip it.

Example:
  metering admin webhook resend 42")]
struct ResendArgs {
    /// The number of the delivery.
    #[arg(value_name = "DELIVERY", value_parser = number)]
    delivery: DeliveryId,
    #[command(flatten)]
    format: Format,
}

impl ResendArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let of = OfDelivery { id: self.delivery };
        let resent = session.administrator().await?.act::<ResendDelivery>(of).await?.data;
        if self.format.json { write_json(out, &resent) } else { delivery::write(out, delivery::RESENT, &resent) }
    }
}

/// Send a test event to the operator's own webhook, which is in the server's configuration.
#[derive(Debug, Args)]
#[command(after_help = "\
A running server sends it. `metering admin webhook deliveries` shows the result.

Example:
  metering admin webhook test")]
struct TestArgs {
    #[command(flatten)]
    format: Format,
}

impl TestArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let sent = session.administrator().await?.act::<TestWebhook>(()).await?.data;
        if self.format.json { write_json(out, &sent) } else { delivery::write(out, "Queued the test event.", &sent) }
    }
}

/// Remove the operator's own webhook with its deliveries.
#[derive(Debug, Args)]
#[command(after_help = "\
First remove `webhooks.url` from the configuration of every server: a server that has it stores the webhook again when
it starts.

Example:
  metering admin webhook remove")]
struct RemoveArgs {
    #[command(flatten)]
    confirmation: Confirmation,
}

impl RemoveArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        self.confirmation.ask("Remove the operator's webhook with its deliveries?").await?;
        administrator.act::<RemoveWebhook>(()).await?;
        Ok(writeln!(out, "The operator's webhook was removed.")?)
    }
}
