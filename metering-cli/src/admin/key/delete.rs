//! `key delete`: deletes a key.

use std::io::Write;

use clap::Args;
use metering_admin::calls::keys::{DeleteKey, ShowKey};

use super::key_of_account::KeyOfAccount;
use crate::admin::session::Session;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::{Format, write_json};

/// Delete a key and its child keys permanently. Its usage stays in the reports.
#[derive(Debug, Args)]
#[command(after_help = "\
Asks for confirmation, unless --yes is given. Takes effect immediately, in running servers too. To stop a key for a
while, use `metering admin key disable`.

Example:
  metering admin key delete org_0123456789abcdefghij key_0123456789abcdef0123 --yes")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    of: KeyOfAccount,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

impl DeleteArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let org = &self.of.org;
        let administrator = session.administrator().await?;
        if !self.yes {
            let before = administrator.get::<ShowKey>(self.of.place()).await?.data;
            confirm(&format!("Permanently delete key {} ({}) of account {org}?", before.id, before.name)).await?;
        }
        let deleted = administrator.act::<DeleteKey>(self.of.place()).await?;
        if self.format.json {
            return write_json(out, &deleted);
        }
        Ok(writeln!(out, "The key is deleted.")?)
    }
}
