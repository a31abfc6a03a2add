//! `account rotate-key`: replaces a key that was lost or leaked.

use std::io::Write;

use clap::Args;
use metering_core::AccountId;

use super::issued::IssuedKey;
use crate::admin::session::{Session, missing_or_revoked};
use crate::failure::Failure;
use crate::output::Format;

/// Replace an account's key and print the new one. The key is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
The old key stops working immediately, in running servers too.

Example:
  metering admin account rotate-key org_0123456789abcdefghij")]
pub(crate) struct RotateKeyArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    #[command(flatten)]
    format: Format,
}

impl RotateKeyArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let store = session.store().await?;
        let key = IssuedKey::new();
        match store.replace_key(&self.org, key.hash(), session.now()).await? {
            Some(account) => key.print(out, self.format.json, &account),
            None => Err(missing_or_revoked(store.as_ref(), &self.org).await),
        }
    }
}
