//! `account show`: one account.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::{OfAccount, ShowAccount};
use metering_core::AccountId;
use metering_core::access::Email;

use super::document;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::Format;

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
