//! `metering admin`: administration of a store, with no server needed and none in the way.
//!
//! A command opens the store, asks it for one atomic fact or reads from it, and prints the answer. It may run beside
//! any number of servers and other commands on the same store.

mod account;
mod backup;
mod export;
mod payments;
mod plan;
mod session;
mod usage;
mod verify;

use std::io::Write;

use clap::{Args, Subcommand};

use crate::database::DatabaseArgs;
use crate::failure::Failure;
use session::Session;

/// Administer a store directly; a server may be running on it.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering admin account list
  metering admin --data /var/lib/metering verify
  metering admin --database sqlite:/var/lib/metering/metering.db plan list"
)]
pub(crate) struct Admin {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Account(account::AccountArgs),
    Plan(plan::PlanArgs),
    Payments(payments::PaymentsArgs),
    Usage(usage::UsageArgs),
    Verify(verify::VerifyArgs),
    Backup(backup::BackupArgs),
    Export(export::ExportArgs),
}

impl Admin {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let session = Session::new(self.database.location(|name| std::env::var_os(name))?);
        match self.command {
            Command::Account(args) => args.run(&session, out).await,
            Command::Plan(args) => args.run(&session, out).await,
            Command::Payments(args) => args.run(&session, out).await,
            Command::Usage(args) => args.run(&session, out).await,
            Command::Verify(args) => args.run(&session, out).await,
            Command::Backup(args) => args.run(&session, out).await,
            Command::Export(args) => args.run(&session, out).await,
        }
    }
}
