//! `metering alert`: the balance below which webhooks get the event `balance.low`.

use std::io::Write;

use clap::{Args, Subcommand};
use metering_client::Client;
use metering_client::calls::webhooks::{GetBalanceAlert, SetBalanceAlert};
use metering_core::Credits;
use metering_core::wire::{BalanceAlertDocument, BalanceAlertRequest};

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::keys::terms::threshold;
use crate::output::Format;

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
    Show(ShowArgs),
    Set(SetArgs),
    Off(OffArgs),
}

/// Show the threshold.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering alert show
  metering alert show --json")]
struct ShowArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    format: Format,
}

/// Set the threshold.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering alert set 5")]
struct SetArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Alert when fewer credits than this are left.
    #[arg(value_name = "CREDITS", value_parser = threshold, allow_negative_numbers = true)]
    below: Credits,
    #[command(flatten)]
    format: Format,
}

/// Remove the threshold.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering alert off")]
struct OffArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    format: Format,
}

impl AlertArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Show(ShowArgs { profile, format }) => {
                let client = profile.open()?.client()?;
                write(Document::of(client.call::<GetBalanceAlert>(&(), &()).await?)?, &format, out)
            }
            Command::Set(SetArgs { profile, below, format }) => {
                set(&profile.open()?.client()?, Some(below), &format, out).await
            }
            Command::Off(OffArgs { profile, format }) => set(&profile.open()?.client()?, None, &format, out).await,
        }
    }
}

async fn set(client: &Client, below: Option<Credits>, format: &Format, out: &mut dyn Write) -> Result<(), Failure> {
    let request = BalanceAlertRequest { below: Some(below), email: None };
    let response = client.call::<SetBalanceAlert>(&(), &request).await?;
    write(Document::of(response)?, format, out)
}

fn write(document: Document<BalanceAlertDocument>, format: &Format, out: &mut dyn Write) -> Result<(), Failure> {
    if format.json {
        return document.write_json(out);
    }
    match document.content.below {
        Some(below) => writeln!(out, "Webhooks get balance.low when the balance falls below {below} credits.")?,
        None => writeln!(out, "No alert: webhooks get only balance.exhausted.")?,
    }
    Ok(())
}
