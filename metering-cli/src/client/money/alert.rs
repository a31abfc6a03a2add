//! `metering alert`: the balance below which webhooks get the event `balance.low`.

use std::io::Write;

use clap::{Args, Subcommand};
use metering_client::calls::webhooks::{GetBalanceAlert, SetBalanceAlert};
use metering_core::Credits;
use metering_core::wire::{BalanceAlertDocument, BalanceAlertRequest};

use crate::client::session::options::CallOptions;
use crate::failure::Failure;
use crate::keys::terms::threshold;

/// Show or set the balance below which webhooks get the event balance.low.
///
/// The event is sent once, and again only after credits were added. balance.exhausted is always sent. Only the
/// account's first key can set the threshold.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering alert set 5
  metering alert show"
)]
pub(crate) struct AlertArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the threshold.
    #[command(after_help = "\
Examples:
  metering alert show
  metering alert show --json")]
    Show(CallOptions),
    Set(SetArgs),
    /// Remove the threshold.
    #[command(after_help = "\
Example:
  metering alert off")]
    Off(CallOptions),
}

/// Set the threshold.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering alert set 5")]
struct SetArgs {
    /// Alert when fewer credits than this are left.
    #[arg(value_name = "CREDITS", value_parser = threshold, allow_negative_numbers = true)]
    below: Credits,
    #[command(flatten)]
    options: CallOptions,
}

impl AlertArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Show(options) => options.call::<GetBalanceAlert>(&(), &(), out, write).await,
            Command::Set(SetArgs { below, options }) => set(&options, Some(below), out).await,
            Command::Off(options) => set(&options, None, out).await,
        }
    }
}

async fn set(options: &CallOptions, below: Option<Credits>, out: &mut dyn Write) -> Result<(), Failure> {
    let request = BalanceAlertRequest { below: Some(below), email: None };
    options.call::<SetBalanceAlert>(&(), &request, out, write).await
}

fn write(alert: &BalanceAlertDocument, out: &mut dyn Write) -> Result<(), Failure> {
    match alert.below {
        Some(below) => writeln!(out, "Webhooks get balance.low when the balance falls below {below} credits.")?,
        None => writeln!(out, "No alert: webhooks get only balance.exhausted.")?,
    }
    Ok(())
}
