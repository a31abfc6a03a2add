//! `account rotate-key`: replaces a key that was lost or leaked.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::{OfAccount, RotateAccountKey};
use metering_core::AccountId;

use super::issued::IssuedKey;
use crate::admin::session::Session;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::output::Format;

/// Replace an account's first key and print the new one. The key is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
The old key stops working immediately, in running servers too, and so does every other key that can manage keys.
`metering admin key rotate` replaces one key and leaves the others alone.

Example:
  metering admin account rotate-key org_0123456789abcdefghij")]
pub(crate) struct RotateKeyArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    format: Format,
}

impl RotateKeyArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let question = format!("Replace the first key of account {}? The old one stops working immediately.", self.org);
        self.confirmation.ask(&question).await?;
        let created = administrator.act::<RotateAccountKey>(OfAccount { id: self.org }).await?;
        IssuedKey(created.api_key).print(out, self.format.json, &created.account)
    }
}
