//! `metering admin account`: creates, shows and changes accounts.

mod alert;
mod create;
pub(super) mod document;
mod entry;
mod issued;
mod limits;
mod list;
mod revoke;
mod rotate_key;
mod show;

use std::io::Write;

use clap::{Args, Subcommand};

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

#[derive(Debug, Subcommand)]
enum Command {
    Create(create::CreateArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Limits(limits::LimitsArgs),
    Alert(alert::AlertArgs),
    Grant(entry::GrantArgs),
    Adjust(entry::AdjustArgs),
    Revoke(revoke::RevokeArgs),
    RotateKey(rotate_key::RotateKeyArgs),
}

impl AccountArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Create(args) => args.run(session, out).await,
            Command::List(args) => args.run(session, out).await,
            Command::Show(args) => args.run(session, out).await,
            Command::Limits(args) => args.run(session, out).await,
            Command::Alert(args) => args.run(session, out).await,
            Command::Grant(args) => args.run(session, out).await,
            Command::Adjust(args) => args.run(session, out).await,
            Command::Revoke(args) => args.run(session, out).await,
            Command::RotateKey(args) => args.run(session, out).await,
        }
    }
}
