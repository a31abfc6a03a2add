//! `account rotate-key`: a new key in the place of one that was lost or seen by others.

use std::io::Write;

use clap::Args;
use metering_core::AccountId;

use super::issued::IssuedKey;
use crate::admin::session::{Session, missing_or_revoked};
use crate::failure::Failure;
use crate::output::Format;

/// Replace an account's key and print the new one, which is shown only this once.
#[derive(Debug, Args)]
#[command(after_help = "\
The old key is refused from then on, in running servers too.

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
