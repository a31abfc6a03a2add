//! `metering admin account`: creates, shows and changes accounts.

mod alert;
mod create;
pub(super) mod document;
mod entry;
mod erase;
mod issued;
mod limits;
mod list;
mod note;
mod revoke;
mod rotate_key;
mod show;

use std::io::Write;

use clap::Args;

use super::commands::commands;
use super::session::Session;
use crate::failure::Failure;

/// Create, show and change accounts.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Example:
  metering admin account list"
)]
pub(crate) struct AccountArgs {
    #[command(subcommand)]
    command: Command,
}

commands! {
    Create(create::CreateArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Limits(limits::LimitsArgs),
    Alert(alert::AlertArgs),
    Note(note::NoteArgs),
    Grant(entry::GrantArgs),
    Adjust(entry::AdjustArgs),
    Revoke(revoke::RevokeArgs),
    Erase(erase::EraseArgs),
    RotateKey(rotate_key::RotateKeyArgs),
}

impl AccountArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        self.command.run(session, out).await
    }
}
