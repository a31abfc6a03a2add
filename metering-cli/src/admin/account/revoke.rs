//! `account revoke`: revokes an account and keeps its records.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::{OfAccount, RevokeAccount, ShowAccount};
use metering_core::AccountId;

use super::document;
use crate::admin::session::Session;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::Format;

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
