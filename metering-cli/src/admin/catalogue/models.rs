//! `catalogue models`: the prices of models that a catalogue names.

mod import;

use std::io::Write;

use clap::Args;

use crate::admin::commands::commands;
use crate::admin::session::Session;
use crate::failure::Failure;

/// The prices of models, in a file that a catalogue names.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Example:
  metering admin catalogue models import prices.json --markup 1.2 --usd-per-credit 0.01 --dry-run"
)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    command: Command,
}

commands! {
    Import(import::ImportArgs),
}

impl ModelsArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        self.command.run(session, out).await
    }
}
