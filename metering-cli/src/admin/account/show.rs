//! `account show`: one account.

use std::io::Write;

use clap::Args;
use metering_core::access::Email;
use metering_core::{Account, AccountId, Store};

use super::document;
use crate::admin::session::{PAGE, Session, find};
use crate::failure::Failure;
use crate::output::Format;

/// Show an account.
#[derive(Debug, Args)]
#[command(after_help = "\
With --email, revoked accounts are ignored.

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
        let store = session.store().await?;
        let account = match (&self.org, &self.email) {
            (Some(org), _) => find(store.as_ref(), org).await?,
            (None, Some(email)) => find_by_email(store.as_ref(), email).await?,
            (None, None) => return Err(Failure::Usage("name an account by its id or with --email".to_owned())),
        };
        document::write(out, self.format.json, "", &account)
    }
}

/// Reads all accounts: the store has no lookup by email, and an operator can wait.
async fn find_by_email(store: &dyn Store, email: &Email) -> Result<Account, Failure> {
    let mut after = None;
    loop {
        let page = store.accounts(after.as_ref(), PAGE).await?;
        let wanted = |account: &Account| account.revoked_at.is_none() && account.email.as_ref() == Some(email);
        if let Some(account) = page.items.into_iter().find(wanted) {
            return Ok(account);
        }
        if page.next.is_none() {
            return Err(Failure::NotFound(format!(
                "no account has the email address {email}; revoked accounts are ignored"
            )));
        }
        after = page.next;
    }
}
