//! `accounts limits`, `accounts rotate` and `accounts close`.

use std::io::Write;

use clap::Args;
use metering_client::calls::child_accounts::{ChangeChildAccount, CloseChildAccount, RotateChildAccount};
use metering_core::access::RateLimits;
use metering_core::wire::{ChangeChildRequest, ChildAccountResponse, ClosedChildResponse};

use super::child::{ChildArgs, ConfirmedArgs};
use super::create;
use crate::failure::Failure;

/// Change the limits of a child account, to at most those of your account.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately.

Examples:
  metering accounts limits org_0123456789abcdefghij --per-minute 60 --per-day 10000
  metering accounts limits org_0123456789abcdefghij --tokens-per-minute 200000")]
pub(super) struct LimitsArgs {
    #[command(flatten)]
    child: ChildArgs,
    /// How many requests it may make in a minute; 0 for no limit.
    #[arg(long, value_name = "N", requires = "per_day", required_unless_present = "tokens_per_minute")]
    per_minute: Option<u32>,
    /// How many requests it may make in a day; 0 for no limit.
    #[arg(long, value_name = "N", requires = "per_minute")]
    per_day: Option<u32>,
    /// How many tokens its requests may use in a minute, on routes that count them; 0 for no limit.
    #[arg(long, value_name = "N")]
    tokens_per_minute: Option<u32>,
}

impl LimitsArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let limits = self.per_minute.zip(self.per_day);
        let rate_limits = limits.map(|(minute, day)| RateLimits::per_minute(minute).and_per_day(day));
        let request = ChangeChildRequest { rate_limits, tokens_per_minute: self.tokens_per_minute };
        let response = self.child.options.client()?.call::<ChangeChildAccount>(&self.child.id(), &request).await?;
        self.child.options.print::<ChildAccountResponse>(response, out, |changed, out| {
            Ok(writeln!(out, "The limits of account {} are changed.", changed.data.org_id)?)
        })
    }
}

/// Replace the keys of a child account whose first key is lost, and print the new one, once.
#[derive(Debug, Args)]
#[command(after_help = "\
The old key stops working immediately, and so does every key of the account that could manage keys. Asks for confirmation,
unless --yes is given.

Example:
  metering accounts rotate org_0123456789abcdefghij --yes")]
pub(super) struct RotateArgs {
    #[command(flatten)]
    of: ConfirmedArgs,
}

impl RotateArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let response = self.of.call::<RotateChildAccount>("Replace the keys of").await?;
        create::write(&response, self.of.child.options.json(), out)
    }
}

/// Close a child account: its credits come back, and its keys stop working.
#[derive(Debug, Args)]
#[command(after_help = "\
Refused while the account has credits that you did not give. Asks for confirmation, unless --yes is given.

Example:
  metering accounts close org_0123456789abcdefghij --yes")]
pub(super) struct CloseArgs {
    #[command(flatten)]
    of: ConfirmedArgs,
}

impl CloseArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let response = self.of.call::<CloseChildAccount>("Permanently close").await?;
        self.of.child.options.print::<ClosedChildResponse>(response, out, |closed, out| {
            Ok(writeln!(out, "Closed; {} credits came back.", closed.credits_returned)?)
        })
    }
}
