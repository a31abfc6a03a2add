//! `webhook test`: sends a test event to the operator's own webhook.

use std::io::Write;

use clap::Args;
use metering_admin::calls::webhooks::TestWebhook;
use metering_admin::wire::ReasonRequest;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, json_line};
use crate::webhooks::delivery;

/// Send a test event to the operator's own webhook, which is in the server's configuration.
#[derive(Debug, Args)]
#[command(after_help = "\
A running server sends it. `metering admin webhook deliveries` shows the result.

Example:
  metering admin webhook test")]
pub(crate) struct TestArgs {
    #[command(flatten)]
    format: Format,
}

impl TestArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let sent = session.administrator().await?.call::<TestWebhook>((), ReasonRequest::default()).await?.data;
        if self.format.json { json_line(out, &sent) } else { delivery::write(out, "Queued the test event.", &sent) }
    }
}
