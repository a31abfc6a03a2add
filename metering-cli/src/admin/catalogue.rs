//! `metering admin catalogue`: checks a catalogue file, shows what it would change, and applies it on all nodes.

mod apply;
mod cancel;
mod check;
mod diff;
mod indented;
mod models;
mod rehearse;
mod show;
mod source;
mod versions;

use std::io::Write;

use clap::Args;

use super::commands::commands;
use super::session::Session;
use crate::failure::Failure;

/// Check a catalogue file, see what it would change, and apply it on all nodes at a time.
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

commands! {
    Check(check::CheckArgs),
    Diff(diff::DiffArgs),
    Models(models::ModelsArgs),
    Rehearse(rehearse::RehearseArgs),
    Apply(apply::ApplyArgs),
    Versions(versions::VersionsArgs),
    Show(show::ShowArgs),
    Cancel(cancel::CancelArgs),
}

impl CatalogueArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        self.command.run(session, out).await
    }
}
