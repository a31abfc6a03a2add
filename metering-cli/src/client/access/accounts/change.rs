//! `accounts limits`, `accounts rotate` and `accounts close`.

use std::io::Write;

use clap::Args;
use metering_client::calls::child_accounts::{ChangeChildAccount, CloseChildAccount, RotateChildAccount};
use metering_core::access::RateLimits;
use metering_core::wire::{ChangeChildRequest, ChildAccountResponse, ClosedChildResponse};

use super::child::{ChildArgs, ConfirmedArgs};
use super::create;
use crate::client::session::documents::Document;
use crate::failure::Failure;

/// Change the rate limits of a child account, to at most those of your account.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately.

Example:
  metering accounts limits org_0123456789abcdefghij --per-minute 60 --per-day 10000")]
pub(super) struct LimitsArgs {
    #[command(flatten)]
    child: ChildArgs,
    /// How many requests it may make in a minute; 0 for no limit.
    #[arg(long, value_name = "N")]
    per_minute: u32,
    /// How many requests it may make in a day; 0 for no limit.
    #[arg(long, value_name = "N")]
    per_day: u32,
}

impl LimitsArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let limits = RateLimits::per_minute(self.per_minute).and_per_day(self.per_day);
        let request = ChangeChildRequest { rate_limits: Some(limits) };
        let response = self.child.client()?.call::<ChangeChildAccount>(&self.child.id(), &request).await?;
        let document: Document<ChildAccountResponse> = Document::of(response)?;
        if self.child.format.json {
            return document.write_json(out);
        }
        Ok(writeln!(out, "The limits of account {} are changed.", document.content.data.org_id)?)
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
        create::write(&response, self.of.child.format.json, out)
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
        let document: Document<ClosedChildResponse> = Document::of(response)?;
        if self.of.child.format.json {
            return document.write_json(out);
        }
        Ok(writeln!(out, "Closed; {} credits came back.", document.content.credits_returned)?)
    }
}
