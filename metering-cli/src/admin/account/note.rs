//! `account note`: writes a note on an account.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::{OfAccount, WriteNote};
use metering_admin::wire::NoteRequest;
use metering_core::AccountId;

use super::document;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::Format;

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
