//! `metering auto-topup`: automatic top-ups with a saved card.

use std::io::Write;

use clap::{Args, Subcommand};
use metering_client::calls::payments::{EndAutoTopUp, GetAutoTopUp, RemoveCard, SetAutoTopUp};
use metering_core::Credits;
use metering_core::payments::TopUpStop;
use metering_core::wire::{AutoTopUpRequest, AutoTopUpResponse};

use crate::client::session::options::CallOptions;
use crate::failure::Failure;
use crate::keys::terms::threshold;

/// Show, turn on or turn off automatic top-ups with a saved card.
///
/// Save a card by buying a plan on the account page. Only the account's first key can change anything here.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering auto-topup on --plan starter --below 5 --monthly-limit 50.00
  metering auto-topup show"
)]
pub(crate) struct AutoTopupArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the saved card and the automatic top-ups.
    #[command(after_help = "\
Examples:
  metering auto-topup show
  metering auto-topup show --json")]
    Show(CallOptions),
    On(OnArgs),
    /// Turn automatic top-ups off. The card stays saved.
    #[command(after_help = "\
Example:
  metering auto-topup off")]
    Off(CallOptions),
    /// Turn automatic top-ups off, and remove the saved card.
    #[command(after_help = "\
Example:
  metering auto-topup remove-card")]
    RemoveCard(CallOptions),
}

/// Charge the saved card when the balance is low, even after a failed charge.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering auto-topup on --plan starter --below 5 --monthly-limit 50.00")]
struct OnArgs {
    /// The plan to buy, one that is sold by card, at its current price.
    #[arg(long, value_name = "PLAN")]
    plan: String,
    /// Buy it when fewer credits than this are left.
    #[arg(long, value_name = "CREDITS", value_parser = threshold, allow_negative_numbers = true)]
    below: Credits,
    /// The maximum to charge in a calendar month (UTC), in the plan's currency.
    #[arg(long, value_name = "AMOUNT")]
    monthly_limit: String,
    #[command(flatten)]
    options: CallOptions,
}

impl AutoTopupArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Show(options) => options.call::<GetAutoTopUp>(&(), &(), out, write).await,
            Command::On(OnArgs { plan, below, monthly_limit, options }) => {
                let (plan_id, threshold, monthly_limit) = (Some(plan), Some(below), Some(monthly_limit));
                let request = AutoTopUpRequest { plan_id, threshold, monthly_limit };
                options.call::<SetAutoTopUp>(&(), &request, out, write).await
            }
            Command::Off(options) => options.call::<EndAutoTopUp>(&(), &(), out, write).await,
            Command::RemoveCard(options) => options.call::<RemoveCard>(&(), &(), out, write).await,
        }
    }
}

fn write(settings: &AutoTopUpResponse, out: &mut dyn Write) -> Result<(), Failure> {
    match &settings.rule {
        Some(rule) => writeln!(
            out,
            "Below {} credits, plan {} is bought for {} {}: at most {} a month (UTC), of which {} were charged.",
            rule.threshold, rule.plan_id, rule.amount, rule.currency, rule.monthly_limit, rule.charged_this_month
        )?,
        None => writeln!(out, "Automatic top-ups are off.")?,
    }
    if let Some(stopped) = &settings.stopped {
        let why = TopUpStop::from_name(stopped).map_or(stopped.as_str(), |stop| stop.description());
        writeln!(out, "Stopped: {why} Turn them on again to go on.")?;
    }
    match &settings.card {
        Some(card) => writeln!(out, "Saved card: {} ending in {}.", card.brand, card.last4)?,
        None => writeln!(out, "No saved card. Save one when you buy a plan by card on the account page.")?,
    }
    Ok(())
}
