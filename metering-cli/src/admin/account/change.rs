//! Commands that show or change one account: show, limits, alert, note and revoke.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::{OfAccount, RevokeAccount, SetLimits, ShowAccount, WriteNote};
use metering_admin::calls::webhooks::SetAlert;
use metering_admin::wire::{AccountAlertRequest, LimitsRequest, NoteRequest};
use metering_core::access::Email;
use metering_core::{AccountId, Credits};

use super::document;
use crate::admin::session::Session;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::keys::terms::threshold;
use crate::output::{Format, write_json};

/// Show an account.
#[derive(Debug, Args)]
#[command(after_help = "\
With --email, revoked accounts are ignored. The account that holds the address comes first; if several only wait for its
verification, the newest.

Examples:
  metering admin account show org_0123456789abcdefghij
  metering admin account show --email ops@example.com --json")]
pub(crate) struct ShowArgs {
    /// The account's id.
    #[arg(value_name = "ORG", required_unless_present = "email")]
    org: Option<AccountId>,
    /// The owner's email address, in upper or lower case.
    #[arg(long, value_name = "EMAIL", conflicts_with = "org")]
    email: Option<Email>,
    #[command(flatten)]
    format: Format,
}

impl ShowArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let id = match (self.org, &self.email) {
            (Some(id), _) => id,
            (None, Some(email)) => {
                let found = administrator.account_by_email(email).await?.org_id;
                found
                    .parse::<AccountId>()
                    .map_err(|_| Failure::Failed(format!("the server sent {found:?}, which is no account")))?
            }
            (None, None) => return Err(Failure::Usage("name an account by its id or with --email".to_owned())),
        };
        let account = administrator.get::<ShowAccount>(OfAccount { id }).await?;
        document::write(out, self.format.json, "", &account)
    }
}

/// Change an account's rate limits. Omitted limits do not change.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately, in running servers too. Requests already accepted in the current minute and day still count.

Examples:
  metering admin account limits org_0123456789abcdefghij --rpm 600
  metering admin account limits org_0123456789abcdefghij --rpm 0 --rpd 0
  metering admin account limits org_0123456789abcdefghij --tpm 200000")]
pub(crate) struct LimitsArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    /// Requests per calendar minute; 0 for no limit.
    #[arg(long, value_name = "N", required_unless_present_any = ["rpd", "tpm"])]
    rpm: Option<u32>,
    /// Requests per UTC day; 0 for no limit.
    #[arg(long, value_name = "N")]
    rpd: Option<u32>,
    /// Tokens per calendar minute, on routes that count them; 0 for no limit.
    #[arg(long, value_name = "N")]
    tpm: Option<u32>,
    #[command(flatten)]
    format: Format,
}

impl LimitsArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let limits = LimitsRequest {
            requests_per_minute: self.rpm,
            requests_per_day: self.rpd,
            tokens_per_minute: self.tpm,
            reason: String::new(),
        };
        let account = session.administrator().await?.call::<SetLimits>(OfAccount { id: self.org }, limits).await?;
        document::write(out, self.format.json, "The rate limits were changed.", &account)
    }
}

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

/// Write a note on an account, for other operators.
#[derive(Debug, Args)]
#[command(after_help = "\
`account show` and the console show it. It is kept in the audit log, so it cannot be changed. The owner's export has it,
without who wrote it.

Example:
  metering admin account note org_0123456789abcdefghij \"Pays by bank transfer, ticket 311\"")]
pub(crate) struct NoteArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    /// The note: one line of at most 500 characters.
    #[arg(value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    format: Format,
}

impl NoteArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let note = NoteRequest { note: self.text, reason: String::new() };
        let account = session.administrator().await?.call::<WriteNote>(OfAccount { id: self.org }, note).await?;
        document::write(out, self.format.json, "The note was written.", &account)
    }
}

/// Revoke an account and its key permanently. Its records stay.
#[derive(Debug, Args)]
#[command(after_help = "\
Asks for confirmation, unless --yes is given. Takes effect immediately, in running servers too. Revoking an account that
is already revoked changes nothing.

Example:
  metering admin account revoke org_0123456789abcdefghij --yes")]
pub(crate) struct RevokeArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

impl RevokeArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let before = administrator.get::<ShowAccount>(OfAccount { id: self.org.clone() }).await?;
        if before.revoked_at.is_some() {
            return document::write(out, self.format.json, "The account was already revoked.", &before);
        }
        if !self.yes {
            confirm(&format!(
                "Permanently revoke account {} ({}) with a balance of {} credits?",
                before.org_id, before.agent_name, before.credit_balance
            ))
            .await?;
        }
        let account = administrator.act::<RevokeAccount>(OfAccount { id: self.org }).await?;
        document::write(out, self.format.json, "The account is revoked.", &account)
    }
}
