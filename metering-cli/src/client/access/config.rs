//! `metering config`: shows and changes profiles. It shows only the ends of keys, and never takes keys as arguments.

mod set;
mod setting;
mod show;
mod unset;

use std::io::Write;

use clap::{Args, Subcommand};

use crate::failure::Failure;

pub(in crate::client::access) use set::read_key;

/// Show and change profiles.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering config show
  metering config set url https://api.example.com --profile work
  metering config set api-key < key.txt
  metering config set daily-limit 2.5

Environment variables override the profile:
  METERING_CLIENT_PROFILE     the profile's name
  METERING_CLIENT_URL         the service's URL
  METERING_CLIENT_API_KEY     the API key
  METERING_CLIENT_HOME        where profiles are kept
  METERING_CLIENT_ALLOW_HTTP  1 allows plain HTTP to other machines"
)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    Show(show::ShowArgs),
    List(show::ListArgs),
    Set(set::SetArgs),
    Unset(unset::UnsetArgs),
    Path(show::PathArgs),
    Remove(unset::RemoveArgs),
}

impl ConfigArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            ConfigCommand::Show(args) => args.run(out),
            ConfigCommand::List(args) => args.run(out),
            ConfigCommand::Set(args) => args.run(),
            ConfigCommand::Unset(args) => args.run().await,
            ConfigCommand::Path(args) => args.run(out),
            ConfigCommand::Remove(args) => args.run().await,
        }
    }
}
