//! `metering admin`: administers a store directly, with or without a running server, or a server through its admin
//! address.
//!
//! A command opens the store, reads from it or makes one atomic change, and prints the result. It can run while any
//! number of servers and other commands use the same store. Changes are in the audit log.

mod account;
mod administrator;
mod audit;
mod backup;
mod catalogue;
mod doctor;
mod export;
mod failures;
mod import;
mod key;
mod key_file;
mod log;
mod migrate;
mod operator;
mod payments;
mod plan;
mod receipt_key;
mod refill;
mod reload;
mod request;
mod session;
mod usage;
mod verify;
mod webhook;

use std::io::Write;

use clap::{Args, Subcommand};

use crate::commands::{self, commands};
use crate::database::DatabaseArgs;
use crate::failure::Failure;
use session::ServerArgs;

/// Administer a store directly, even while servers use it, or a server through its admin address.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering admin account list
  metering admin --config /etc/metering/metering.toml account list
  metering admin --data /var/lib/metering verify
  metering admin --database sqlite:/var/lib/metering/metering.db plan list
  metering admin --server http://127.0.0.1:9090 --reason \"Ticket 311\" account grant org_0123456789abcdefghij --credits 5"
)]
pub(crate) struct Admin {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    StoreCommand(StoreCommand),
    Migrate(migrate::MigrateArgs),
    Doctor(doctor::DoctorArgs),
    ReceiptKey(receipt_key::ReceiptKeyArgs),
}

commands! {
    /// The commands that work on one store.
    enum StoreCommand:
    Account(account::AccountArgs),
    Key(key::KeyArgs),
    Request(request::RequestArgs),
    Webhook(webhook::WebhookArgs),
    Plan(plan::PlanArgs),
    Catalogue(catalogue::CatalogueArgs),
    Refill(refill::RefillArgs),
    Payments(payments::PaymentsArgs),
    Usage(usage::UsageArgs),
    Verify(verify::VerifyArgs),
    Log(log::LogArgs),
    Backup(backup::BackupArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Reload(reload::ReloadArgs),
    Operator(operator::OperatorArgs),
    Audit(audit::AuditArgs),
}

impl Admin {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::StoreCommand(command) => {
                let sources = self.database.sources(std::env::vars_os())?;
                let location = self.database.location(&sources);
                let session = self.server.session(|| location, sources)?;
                command.run(&session, out).await
            }
            Command::Doctor(_) if self.server.is_given() => {
                let problem = "doctor checks this machine: name a configuration with --config, not a server";
                Err(Failure::Usage(problem.to_owned()))
            }
            Command::Doctor(args) => args.run(&self.database, out).await,
            // `migrate` has its own options for its two stores.
            Command::Migrate(_) if self.database.is_given() || self.server.is_given() => {
                let problem = "migrate takes --from and --to, not --database, --data, --config or --server";
                Err(Failure::Usage(problem.to_owned()))
            }
            Command::Migrate(args) => args.run(out).await,
            Command::ReceiptKey(args) => args.run(out),
        }
    }
}
