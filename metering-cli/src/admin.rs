//! `metering admin`: administers a store directly, with or without a running server.
//!
//! A command opens the store, reads from it or makes one atomic change, and prints the result. It can run while any
//! number of servers and other commands use the same store.

mod account;
mod backup;
mod export;
mod migrate;
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

/// Administer a store directly, even while servers use it.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering admin account list
  metering admin --config /etc/metering/metering.toml account list
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
    #[command(flatten)]
    StoreCommand(StoreCommand),
    Migrate(migrate::MigrateArgs),
}

/// The commands that work on one store.
#[derive(Debug, Subcommand)]
enum StoreCommand {
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
        match self.command {
            Command::StoreCommand(command) => {
                let sources = self.database.sources(std::env::vars_os())?;
                let session = Session::new(self.database.location(&sources)?, sources);
                command.run(&session, out).await
            }
            // migrate names its two stores itself.
            Command::Migrate(_) if self.database.is_given() => {
                Err(Failure::Usage("migrate takes --from and --to, not --database, --data or --config".to_owned()))
            }
            Command::Migrate(args) => args.run(out).await,
        }
    }
}

impl StoreCommand {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Self::Account(args) => args.run(session, out).await,
            Self::Plan(args) => args.run(session, out).await,
            Self::Payments(args) => args.run(session, out).await,
            Self::Usage(args) => args.run(session, out).await,
            Self::Verify(args) => args.run(session, out).await,
            Self::Backup(args) => args.run(session, out).await,
            Self::Export(args) => args.run(session, out).await,
        }
    }
}
