//! `metering members`: people who sign in to the account as themselves.

mod change;
mod invite;
mod list;
mod log;

use std::io::Write;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Let others use the account as themselves, each with a role, without the key.
///
/// An owner may do everything. Billing buys and changes billing details. A developer makes and changes keys and webhooks. A
/// viewer reads. Members sign in on the service's pages, by email or with a wallet. Only the account's first key can
/// manage members from here.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering members invite developer --email jo@example.com
  metering members list
  metering members log"
)]
pub(crate) struct MembersArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::ListArgs),
    Invite(invite::InviteArgs),
    Role(change::RoleArgs),
    Remove(change::RemoveArgs),
    Log(log::LogArgs),
}

impl MembersArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::List(args) => args.run(out).await,
            Command::Invite(args) => args.run(out).await,
            Command::Role(args) => args.run(out).await,
            Command::Remove(args) => args.run(out).await,
            Command::Log(args) => args.run(out).await,
        }
    }
}
