//! `metering webhooks`: the URLs that the account's events are sent to.

mod change;
mod create;
mod delete;
mod deliveries;
mod issued;
mod list;
mod resend;
mod rotate;
mod show;
mod test;

use std::io::Write;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Send the account's events to a server of yours, and see what it responded.
///
/// Requests are signed as the Standard Webhooks specification says, and retried for three days until the server
/// responds with a 2xx status. Only the account's first key can change webhooks; keys with the scope read list them.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering webhooks create https://hooks.example.com/metering --events balance.low,balance.exhausted
  metering webhooks test we_0123456789abcdef0123456789abcdef
  metering webhooks list"
)]
pub(crate) struct WebhooksArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::ListArgs),
    Create(create::CreateArgs),
    Show(show::ShowArgs),
    Set(change::SetArgs),
    Rotate(rotate::RotateArgs),
    Test(test::TestArgs),
    Deliveries(deliveries::DeliveriesArgs),
    Resend(resend::ResendArgs),
    Delete(delete::DeleteArgs),
}

impl WebhooksArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::List(args) => args.run(out).await,
            Command::Create(args) => args.run(out).await,
            Command::Show(args) => args.run(out).await,
            Command::Set(args) => args.run(out).await,
            Command::Rotate(args) => args.run(out).await,
            Command::Test(args) => args.run(out).await,
            Command::Deliveries(args) => args.run(out).await,
            Command::Resend(args) => args.run(out).await,
            Command::Delete(args) => args.run(out).await,
        }
    }
}
