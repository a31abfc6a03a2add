//! `account alert`: the balance below which an account's webhooks get `balance.low`.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::OfAccount;
use metering_admin::calls::webhooks::SetAlert;
use metering_admin::wire::AccountAlertRequest;
use metering_core::{AccountId, Credits};

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::keys::terms::threshold;
use crate::output::{Format, write_json};

/// Set or remove the balance below which an account's webhooks get the event balance.low.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately. The account's owner can change it.

Examples:
  metering admin account alert org_0123456789abcdefghij --below 5
  metering admin account alert org_0123456789abcdefghij --off")]
pub(crate) struct AlertArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    /// Alert when fewer credits than this are left.
    #[arg(
        long,
        value_name = "CREDITS",
        value_parser = threshold,
        allow_negative_numbers = true,
        required_unless_present = "off"
    )]
    below: Option<Credits>,
    /// Remove the threshold.
    #[arg(long, conflicts_with = "below")]
    off: bool,
    #[command(flatten)]
    format: Format,
}

impl AlertArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let wanted = AccountAlertRequest { below: Some(self.below), reason: String::new() };
        let alert = session.administrator().await?.call::<SetAlert>(OfAccount { id: self.org }, wanted).await?;
        if self.format.json {
            return write_json(out, &alert);
        }
        match alert.below {
            Some(below) => writeln!(out, "Webhooks get balance.low when the balance falls below {below} credits.")?,
            None => writeln!(out, "No alert: webhooks get only balance.exhausted.")?,
        }
        Ok(())
    }
}
