//! `accounts rotate` and `accounts close`.

use std::io::Write;

use clap::Args;
use metering_client::calls::child_accounts::{CloseChildAccount, OfChild, RotateChildAccount};
use metering_core::AccountId;
use metering_core::wire::ClosedChildResponse;

use super::create;
use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::Format;

/// Replace the keys of a child account whose first key is lost, and print the new one, once.
#[derive(Debug, Args)]
#[command(after_help = "\
The old key stops working immediately, and so does every key of the account that could manage keys. Asks for confirmation,
unless --yes is given.

Example:
  metering accounts rotate org_0123456789abcdefghij --yes")]
pub(super) struct RotateArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The child account.
    #[arg(value_name = "ORG")]
    org: AccountId,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

impl RotateArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        if !self.yes {
            confirm(&format!("Replace the keys of account {}?", self.org)).await?;
        }
        let response = client.call::<RotateChildAccount>(&OfChild { id: self.org.to_string() }, &()).await?;
        create::write(&response, self.format.json, out)
    }
}

/// Close a child account: its credits come back, and its keys stop working.
#[derive(Debug, Args)]
#[command(after_help = "\
Asks for confirmation, unless --yes is given.

Example:
  metering accounts close org_0123456789abcdefghij --yes")]
pub(super) struct CloseArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The child account.
    #[arg(value_name = "ORG")]
    org: AccountId,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

impl CloseArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        if !self.yes {
            confirm(&format!("Permanently close account {}?", self.org)).await?;
        }
        let response = client.call::<CloseChildAccount>(&OfChild { id: self.org.to_string() }, &()).await?;
        let document: Document<ClosedChildResponse> = Document::of(response)?;
        if self.format.json {
            return document.write_json(out);
        }
        Ok(writeln!(out, "Closed; {} credits came back.", document.content.credits_returned)?)
    }
}
