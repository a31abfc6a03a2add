//! `metering keys`: the profile's key and its child keys.

mod change;
mod create;
mod delete;
pub(super) mod issued;
mod leaked;
mod list;
mod response;
mod rotate;
mod show;

use std::io::Write;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Make keys for others, with limits, and manage them.
///
/// A key manages itself and its child keys, if it has the scope `manage`. A child key cannot be used for
/// more than its parent, and stops with it.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering keys create --name sub-agent --limit 5 --limit-reset daily
  metering keys list"
)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(create::CreateArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Set(change::SetArgs),
    Disable(change::DisableArgs),
    Enable(change::EnableArgs),
    Rotate(rotate::RotateArgs),
    Delete(delete::DeleteArgs),
    Leaked(leaked::LeakedArgs),
}

impl KeysArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Create(args) => args.run(out).await,
            Command::List(args) => args.run(out).await,
            Command::Show(args) => args.run(out).await,
            Command::Set(args) => args.run(out).await,
            Command::Disable(args) => args.run(out).await,
            Command::Enable(args) => args.run(out).await,
            Command::Rotate(args) => args.run(out).await,
            Command::Delete(args) => args.run(out).await,
            Command::Leaked(args) => args.run(out).await,
        }
    }
}
