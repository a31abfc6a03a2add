//! `webhook resend`: sends a delivery of any account again.

use std::io::Write;

use clap::Args;
use metering_admin::calls::webhooks::{OfDelivery, ResendDelivery};
use metering_admin::wire::ReasonRequest;
use metering_core::events::DeliveryId;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, json_line};
use crate::webhooks::delivery::{self, number};

/// Send a delivery of any account again, regardless of its state.
#[derive(Debug, Args)]
#[command(after_help = "\
A running server sends it. The event keeps its id, so a receiver that has handled it can skip it.

Example:
  metering admin webhook resend 42")]
pub(crate) struct ResendArgs {
    /// The number of the delivery.
    #[arg(value_name = "DELIVERY", value_parser = number)]
    delivery: DeliveryId,
    #[command(flatten)]
    format: Format,
}

impl ResendArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let (of, reason) = (OfDelivery { id: self.delivery }, ReasonRequest::default());
        let resent = session.administrator().await?.call::<ResendDelivery>(of, reason).await?.data;
        if self.format.json { json_line(out, &resent) } else { delivery::write(out, delivery::RESENT, &resent) }
    }
}
