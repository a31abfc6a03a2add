//! `metering admin request`: requests whose credits are or were held.

mod list;
mod show;

use std::io::Write;

use clap::Args;

use super::commands::commands;
use super::session::Session;
use crate::failure::Failure;

/// List and show requests whose credits are held until their cost is known.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Example:
  metering admin request list org_0123456789abcdefghij"
)]
pub(crate) struct RequestArgs {
    #[command(subcommand)]
    command: Command,
}

commands! {
    List(list::ListArgs),
    Show(show::ShowArgs),
}

impl RequestArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        self.command.run(session, out).await
    }
}
