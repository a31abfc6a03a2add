//! `metering accounts`: child accounts, for the account's own customers.

mod change;
mod child;
mod create;
mod credits;
mod list;

use std::io::Write;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Manage child accounts: accounts of your own customers, each with keys, a balance and statements of its own.
///
/// You fill them with your credits. A child account does not learn whose it is. Only the account's first key can do this.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering accounts create customer-1
  metering accounts give org_0123456789abcdefghij 5
  metering accounts list
  metering accounts usage --days 7"
)]
pub(crate) struct AccountsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(create::CreateArgs),
    List(list::ListArgs),
    Usage(list::UsageArgs),
    Give(credits::GiveArgs),
    Take(credits::TakeArgs),
    Limits(change::LimitsArgs),
    Rotate(change::RotateArgs),
    Close(change::CloseArgs),
}

impl AccountsArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Create(args) => args.run(out).await,
            Command::List(args) => args.run(out).await,
            Command::Usage(args) => args.run(out).await,
            Command::Give(args) => args.run(out).await,
            Command::Take(args) => args.run(out).await,
            Command::Limits(args) => args.run(out).await,
            Command::Rotate(args) => args.run(out).await,
            Command::Close(args) => args.run(out).await,
        }
    }
}
