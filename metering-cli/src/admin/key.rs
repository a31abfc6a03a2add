//! `metering admin key`: the keys of an account.

mod change;
mod create;
mod delete;
mod issued;
mod key_of_account;
mod list;
mod rotate;
mod show;

use std::io::Write;

use clap::Args;

use super::commands::commands;
use super::session::Session;
use crate::failure::Failure;

/// List, show, create and change the keys of an account.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
An account has its first key from the beginning; `metering admin account rotate-key` replaces it.

Example:
  metering admin key list org_0123456789abcdefghij"
)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    command: Command,
}

commands! {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Create(create::CreateArgs),
    Set(change::SetArgs),
    Disable(change::DisableArgs),
    Enable(change::EnableArgs),
    Rotate(rotate::RotateArgs),
    Delete(delete::DeleteArgs),
}

impl KeyArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        self.command.run(session, out).await
    }
}
