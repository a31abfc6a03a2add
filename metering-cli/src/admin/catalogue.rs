//! `metering admin catalogue`: checks a catalogue file, and shows what it would change, before it is served.

mod check;
mod diff;
mod rehearse;
mod source;

use std::io::Write;

use clap::{Args, Subcommand};

use super::session::Session;
use crate::failure::Failure;

/// Check a catalogue file, and see what it would change, before a server serves it. Changes nothing.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Example:
  metering admin catalogue rehearse new-routes.json --with routes.json --days 30"
)]
pub(crate) struct CatalogueArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::CheckArgs),
    Diff(diff::DiffArgs),
    Rehearse(rehearse::RehearseArgs),
}

impl CatalogueArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Check(args) => args.run(session, out).await,
            Command::Diff(args) => args.run(session, out).await,
            Command::Rehearse(args) => args.run(session, out).await,
        }
    }
}
