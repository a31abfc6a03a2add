//! `metering admin plan`: shows and changes the plans.

mod activate;
mod import;
mod key_args;
mod list;
mod listed;
mod remove;
mod set;
mod unconfigured;

use std::io::Write;

use clap::Args;

use super::commands::commands;
use super::session::Session;
use crate::failure::Failure;

/// Show and change the plans.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Example:
  metering admin plan list --all"
)]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    command: Command,
}

commands! {
    List(list::ListArgs),
    Set(Box<set::SetArgs>),
    Remove(remove::RemoveArgs),
    Activate(activate::ActivateArgs),
    Import(import::ImportArgs),
}

impl PlanArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        self.command.run(session, out).await
    }
}
