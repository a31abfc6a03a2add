//! `metering admin webhook`: the webhooks of the operator and of accounts, and their deliveries.

mod deliveries;
mod list;
mod remove;
mod resend;
mod test;

use std::io::Write;

use clap::{Args, Subcommand};

use super::session::Session;
use crate::failure::Failure;

/// List webhooks and their deliveries, and send parked deliveries again.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering admin webhook deliveries --state parked
  metering admin webhook resend 42"
)]
pub(crate) struct WebhookArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::ListArgs),
    Deliveries(deliveries::DeliveriesArgs),
    Resend(resend::ResendArgs),
    Test(test::TestArgs),
    Remove(remove::RemoveArgs),
}

impl WebhookArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::List(args) => args.run(session, out).await,
            Command::Deliveries(args) => args.run(session, out).await,
            Command::Resend(args) => args.run(session, out).await,
            Command::Test(args) => args.run(session, out).await,
            Command::Remove(args) => args.run(session, out).await,
        }
    }
}
